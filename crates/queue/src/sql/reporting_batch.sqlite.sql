select id from batches where state in (1, 2, 5) and state in (2, 5) order by id limit 1
