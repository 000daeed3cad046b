select id from waiting where lock = $1 and coalesce_key = $2
