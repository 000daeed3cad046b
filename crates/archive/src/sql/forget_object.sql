delete from objects where id = $1
