-- By the key of local_ids, which begins with the collection; a handful of collections is asked for
-- quicker than all local identifiers are read.
select l.object from collections c join local_ids l on l.collection = c.name and l.local_id = $1
order by l.object limit 2
