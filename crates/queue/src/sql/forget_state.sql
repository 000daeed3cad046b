delete from states where job = $1 and stage = $2
