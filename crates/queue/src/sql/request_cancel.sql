update started set cancel_by = $3, cancel_why = $4 where lock = $1 and id = $2
