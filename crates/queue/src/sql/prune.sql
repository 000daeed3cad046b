-- Deleting what is older than its retention. All rows of a job go in one transaction.

-- name: oldest_jobs
select id, pipeline, status, ended_at, added_at from jobs where id > $1 order by id limit $2

-- name: prune_history (sqlite)
delete from history where job = $1

-- name: prune_history (postgres)
delete from history where job = any ($1::bigint[])

-- name: prune_tries (sqlite)
delete from tries where job = $1

-- name: prune_tries (postgres)
delete from tries where job = any ($1::bigint[])

-- name: prune_checkpoints (sqlite)
delete from checkpoints where job = $1

-- name: prune_checkpoints (postgres)
delete from checkpoints where job = any ($1::bigint[])

-- name: prune_states (sqlite)
delete from states where job = $1

-- name: prune_states (postgres)
delete from states where job = any ($1::bigint[])

-- name: prune_replacements (sqlite)
delete from replacements where job = $1

-- name: prune_replacements (postgres)
delete from replacements where job = any ($1::bigint[])

-- name: prune_jobs (sqlite)
delete from job_records where id = $1

-- name: prune_jobs (postgres)
delete from job_records where id = any ($1::bigint[])

-- name: prune_workers
delete from workers where ended_at < $1 and not exists (select 1 from leases where worker = workers.id)

-- name: prune_minutes
delete from minutes where minute < $1

-- name: prune_job_holds
-- Holds of jobs that ended while they were held.
delete from holds
where kind = 'job'
  and exists (select 1 from endings e where e.job = case when holds.kind = 'job' then cast(holds.name as bigint) end)
