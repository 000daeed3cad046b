select 1 from waiting where state = 1 limit 1
