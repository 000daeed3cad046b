select min(due) from waiting where stage = $1 and state = 2
