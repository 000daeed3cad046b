update waiting set state = $2, blocked_on = $3, since = $4 where id = $1
