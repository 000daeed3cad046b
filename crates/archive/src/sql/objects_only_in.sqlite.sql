-- Objects of which every copy is in one of these stores.
select count(distinct o.id), min(o.identifier), min(c.store)
from copies c join objects o on o.id = c.object
where o.state = 1 and c.store in (select value from json_each($1))
  and not exists (select 1 from copies r where r.object = c.object and r.store not in (select value from json_each($1)))
