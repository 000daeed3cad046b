delete from waiting where id = $1
