-- Objects of which every copy is in one of these stores.
select count(distinct o.id), min(o.identifier), min(c.store)
from copies c join objects o on o.id = c.object
where o.state = 1 and c.store = any(array(select json_array_elements_text(cast(cast($1 as text) as json))))
  and not exists (select 1 from copies r where r.object = c.object
    and r.store <> all(array(select json_array_elements_text(cast(cast($1 as text) as json)))))
