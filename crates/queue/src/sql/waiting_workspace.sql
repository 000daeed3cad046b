select workspace from waiting where id = $1
