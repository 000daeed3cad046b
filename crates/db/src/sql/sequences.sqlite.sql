select name, value from counters order by name
