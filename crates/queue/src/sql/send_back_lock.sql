update started set stage = $3 where lock = $1 and id = $2
