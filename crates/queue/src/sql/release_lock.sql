delete from started where lock = $1 and id = $2
