delete from states where job = $1
