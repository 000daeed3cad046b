select o.id, o.identifier, o.collection, o.state, o.head, o.title, o.files, o.bytes,
       o.created_at, o.updated_at, o.metadata, o.lock
from objects o
where o.id > $1
  and (cast($2 as text) is null or o.identifier = $2)
  and (cast($3 as text) is null
       or o.id in (select l.object from local_ids l where l.local_id = $3))
  and (cast($4 as text) is null or o.collection = $4)
  and (cast($5 as bigint) is null or o.state = $5)
  and (cast($6 as text) is null
       or o.id in (select f.object from files f where f.puid = $6 and f.until is null))
  and (cast($7 as bigint) is null or o.updated_at >= $7)
  and (cast($8 as bigint) is null or o.updated_at < $8)
  and (cast($10 as text) is null
       or lower(o.title) like $10 escape '\'
       or lower(o.identifier) like $10 escape '\'
       or exists (select 1 from local_ids l
                  where l.object = o.id and lower(l.local_id) like $10 escape '\'))
order by o.id limit $9
