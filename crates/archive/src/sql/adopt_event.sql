update events set object = $2 where id = $1
