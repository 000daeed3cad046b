update started set progress = $5 where lock = $1 and id = $2 and token = $3 and worker = $4
