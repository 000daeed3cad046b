select count(*) from waiting where stage = $1
