delete from received where place = $1 and batch = $2
