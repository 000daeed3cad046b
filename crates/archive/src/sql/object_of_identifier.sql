select id from objects where identifier = $1
