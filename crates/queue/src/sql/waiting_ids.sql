select id from waiting where stage = $1 order by id limit $2
