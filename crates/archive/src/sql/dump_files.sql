select 'file ' || o.identifier || ' ' || f.path || ' ' || cast(f.since as text) || ' '
  || coalesce(cast(f.until as text), '-') || ' ' || cast(f.size as text) || ' ' || f.sha512 || ' '
  || coalesce(f.digests, '') || ' ' || coalesce(f.puid, '') || ' ' || coalesce(f.format, '')
  || ' ' || coalesce(cast(f.modified as text), '-')
from files f join objects o on o.id = f.object order by o.identifier, f.path, f.since
