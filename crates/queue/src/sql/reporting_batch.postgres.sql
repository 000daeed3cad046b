select id from batches where state in (2, 5) and open = 0 order by id limit 1
for no key update skip locked
