-- What jobs leave behind, and cleaning it up.

-- name: uncleaned_ingests
-- Jobs that will not go on by themselves.
select i.job, j.status, coalesce(j.ended_at, f.failed_at),
       (select count(*) from space_reservations r where r.job = i.job), i.collection
from ingests i
join queue_jobs j on j.id = i.job
left join queue_failures f on f.job = i.job
where i.cleaned_at is null and i.job > $1 and j.status <> 'open'
order by i.job limit $2

-- name: ingest_to_discard
select o.identifier, o.lock, i.recorded_at
from ingests i left join objects o on o.id = i.object
where i.job = $1

-- name: discard_ingest
-- A job may have failed before anything else was known of it.
insert into ingests (job, batch, collection, began_at, cleaned_at, discards)
select j.id, j.batch, coalesce(j.collection, 'default'), j.added_at, cast($2 as bigint), 1
from queue_jobs j where j.id = $1
on conflict (job) do update set
  cleaned_at = excluded.cleaned_at, discards = ingests.discards + 1, space_bytes = null,
  package = null, version = null, unchanged = 0, metadata = null, stores = null,
  validated_files = null, validated_bytes = null, said = null

-- name: is_left_over
-- Nothing is needed of a job that succeeded or was cancelled, nor once the version is recorded. Of
-- other jobs only what was discarded is left over.
select 1 from queue_jobs j
left join ingests i on i.job = j.id
where j.id = $1 and (j.status in ('succeeded', 'cancelled') or i.recorded_at is not null or i.discards > $2)
