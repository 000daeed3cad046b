select 'directory ' || o.identifier || ' ' || cast(d.version as text) || ' ' || d.path || ' '
  || coalesce(cast(d.modified as text), '-')
from empty_directories d join objects o on o.id = d.object order by o.identifier, d.version, d.path
