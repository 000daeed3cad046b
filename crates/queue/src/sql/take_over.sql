update started set worker = $3, token = $4, claimed_at = $5, started_at = $5 where lock = $1 and id = $2
