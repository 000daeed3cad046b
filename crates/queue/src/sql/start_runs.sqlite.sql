update started set started_at = $1 where lock = $3 and id = $4 and token = $5 and worker = $2 returning id
