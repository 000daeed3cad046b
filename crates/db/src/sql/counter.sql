select value from counters where name = $1
