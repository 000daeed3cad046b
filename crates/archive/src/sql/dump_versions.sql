select 'version ' || o.identifier || ' ' || cast(v.number as text) || ' ' || cast(v.job as text)
  || ' ' || v.submitter || ' ' || coalesce(v.message, '') || ' ' || coalesce(v.metadata, '')
  || ' ' || cast(v.files as text) || ' ' || cast(v.bytes as text) || ' ' || cast(v.files_new as text)
  || ' ' || cast(v.files_changed as text) || ' ' || cast(v.files_absent as text)
  || ' ' || cast(v.created_at as text)
from versions v join objects o on o.id = v.object order by o.identifier, v.number
