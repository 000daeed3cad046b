update waiting set stage = $2, since = $3 where id = $1
