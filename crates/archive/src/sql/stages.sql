-- What the stages of an ingest read and write beside the ingest itself.

-- name: forget_ingest_events
delete from ingest_events where job = $1

-- name: ingest_cleaned
update ingests set cleaned_at = $2 where job = $1

-- name: preserved_in
-- The stores that have a verified copy of what a job has deposited; one that was found bad is none.
-- A job that changed nothing made no version: the copies of the version before are what it is
-- preserved as.
select c.store
from ingests i
join objects o on o.id = i.object and o.state = 1
join copies c on c.object = i.object
where i.job = $1 and c.state = 0
  and (i.recorded_at is not null and c.version >= i.version
    or i.unchanged = 1 and c.version >= i.version - 1)

-- name: held_files
-- Files of the current version that a job brings too.
select f.path, f.size, f.sha512, f.digests, f.puid, f.format, f.since, f.until, f.modified
from files f
where f.object = $1 and f.until is null and f.path > $3
  and exists (select 1 from ingest_files i where i.job = $2 and i.path = f.path)
order by f.path limit $4

-- name: carried_files
-- Files of the current version that a job does not bring, so that its version carries them over.
select f.path, f.size, f.sha512, f.digests, f.puid, f.format, f.since, f.until, f.modified
from files f
where f.object = $1 and f.until is null and f.path > $3
  and not exists (select 1 from ingest_files i where i.job = $2 and i.path = f.path)
order by f.path limit $4

-- name: count_formats
select puid, count(*), coalesce(cast(sum(size) as bigint), 0), min(format)
from ingest_files where job = $1 group by puid order by puid

-- name: copy_current_read
-- All content that the current version refers to was read; that of earlier versions was not.
update copies set current_read_at = $3 where object = $1 and store = $2

-- name: files_read
select number, path, size, sha512, digests from ingest_files
where job = $1 and sha512 is not null

-- name: requeued_by
-- Who sent a job again.
select distinct who from queue_history where job = $1 and event = 'requeued' order by who
