delete from tries where job = $1
