select id from installation order by id limit 1
