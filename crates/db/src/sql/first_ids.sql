insert into counters (name, value) values ($1, $2)
