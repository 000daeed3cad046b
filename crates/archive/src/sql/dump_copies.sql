select 'copy ' || o.identifier || ' ' || c.store || ' ' || cast(c.version as text) || ' ' || c.key
  || ' ' || c.digest || ' ' || cast(c.files as text) || ' ' || cast(c.bytes as text) || ' '
  || cast(c.stored_at as text)
from copies c join objects o on o.id = c.object order by o.identifier, c.store
