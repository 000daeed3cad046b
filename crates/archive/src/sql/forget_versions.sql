delete from versions where object = $1
