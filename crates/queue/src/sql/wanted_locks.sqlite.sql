select lock from waiting where lock = $1 and state = 1 limit 1
