select id from waiting where stage = $1 and state <> 3 limit 1
