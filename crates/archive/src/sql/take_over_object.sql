update objects set job = $2 where id = $1
