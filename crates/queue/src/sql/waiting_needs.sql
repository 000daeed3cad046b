select needs from waiting where id = $1
