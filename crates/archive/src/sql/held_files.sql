-- Files of the current version that a job brings too.
select f.path, f.size, f.sha512, f.digests, f.puid, f.format, f.since, f.until, f.modified
from files f
where f.object = $1 and f.until is null and f.path > $3
  and exists (select 1 from ingest_files i where i.job = $2 and i.path = f.path)
order by f.path limit $4
