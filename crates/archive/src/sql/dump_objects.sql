select 'object ' || o.identifier || ' ' || o.collection || ' ' || o.lock || ' ' || cast(o.state as text)
  || ' ' || cast(o.head as text) || ' ' || coalesce(o.title, '') || ' ' || coalesce(o.metadata, '')
  || ' ' || cast(o.files as text) || ' ' || cast(o.bytes as text) || ' ' || cast(o.created_at as text)
  || ' ' || cast(o.updated_at as text) || ' ' || coalesce(o.place, '')
from objects o where o.state = 1 order by o.identifier
