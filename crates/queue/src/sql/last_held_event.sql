select who, at, why from history where job = $1 and event = 'held' order by id desc limit 1
