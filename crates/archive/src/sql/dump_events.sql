-- Events of no version or no job are not part of a version's record, so that no store can know them.
select 'event ' || o.identifier || ' ' || e.id || ' ' || cast(e.version as text) || ' ' || e.kind
  || ' ' || cast(e.at as text) || ' ' || e.agent || ' ' || e.outcome || ' ' || coalesce(e.detail, '')
  || ' ' || coalesce(e.note, '') || ' ' || coalesce(e.path, '') || ' ' || coalesce(e.people, '')
from events e join objects o on o.id = e.object
where e.version is not null and e.job is not null
order by o.identifier, e.at, e.id
