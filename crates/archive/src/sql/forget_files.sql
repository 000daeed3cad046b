delete from files where object = $1
