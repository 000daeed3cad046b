update waiting set state = $3, since = $1, blocked_on = null, why = null where id = $2
