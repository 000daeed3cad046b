delete from copies where object = $1
