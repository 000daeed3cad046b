select o.id, o.identifier, o.collection, o.lock, o.state, o.head, o.metadata, o.place
from local_ids l join objects o on o.id = l.object
where l.collection = $1 and l.local_id = $2
