select id from waiting where lock = $1 and id <> $2 and state in (0, 1) order by state, id limit 1
