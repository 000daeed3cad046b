-- Runs that are under way: start, progress, checkpoints, and the ways out but success.

-- name: free_runs (sqlite)
-- Between runs the lock stays with the job (I3), and no worker has it.
update leases set worker = null, started_at = null, stage = $3, error_seen = null, progress = null, probe = null
where lock = $1 and id = $2

-- name: free_runs (postgres)
-- Between runs the lock stays with the job (I3), and no worker has it.
update leases set worker = null, started_at = null, stage = ($3::bigint[])[array_position($1::text[], lock)],
  error_seen = null, progress = null, probe = null
where lock = any ($1::text[]) and id = any ($2::bigint[])

-- name: release_lock
delete from leases where lock = $1 and id = $2

-- name: find_runs (sqlite)
select s.token, s.stage, case when s.started_at is null then 0 else 1 end, s.cancel_by, s.cancel_why, s.probe,
  j.subject, j.priority, j.collection, j.targets, j.workspace, j.needs, j.batch, j.payload, j.added_at,
  (select attempts from tries where job = $3 and stage = $5), null
from leases s join job_records j on j.id = s.id
where s.lock = $2 and s.id = $3 and s.token = $4 and s.worker = $1

-- name: find_runs (postgres)
-- The runs of leases that are good, locked in the order given; with each the tries of the stage after it.
select s.token, s.stage, case when s.started_at is null then 0 else 1 end, s.cancel_by, s.cancel_why, s.probe,
  j.subject, j.priority, j.collection, j.targets, j.workspace, j.needs, j.batch, j.payload, j.added_at,
  (select attempts from tries where job = r.id and stage = r.next), nextval('tokens') * 4096
from unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) as r (lock, id, token, next),
  lateral (
    select * from leases where lock = r.lock and id = r.id and token = r.token and worker = $1 offset 0 for update
  ) as s,
  lateral (select * from job_records where id = r.id offset 0) as j

-- name: start_runs (sqlite)
update leases set started_at = $1 where lock = $3 and id = $4 and token = $5 and worker = $2 returning id

-- name: start_runs (postgres)
update leases set started_at = $1
where worker = $2 and lock = any ($3::text[]) and id = any ($4::bigint[]) and token = any ($5::bigint[])
returning id

-- name: set_progress
update leases set progress = $5 where lock = $1 and id = $2 and token = $3 and worker = $4

-- name: set_error_seen
update leases set error_seen = $5 where lock = $1 and id = $2 and token = $3 and worker = $4

-- name: set_checkpoint
insert into checkpoints (job, stage, key, value, at) values ($1, $2, $3, $4, $5)
on conflict (job, stage, key) do update set value = excluded.value, at = excluded.at

-- name: job_checkpoints
select key, value from checkpoints where job = $1 and stage = $2 order by key

-- name: set_targets
update job_records set targets = $2 where id = $1

-- name: insert_begun
insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, why, since)
values ($1, $2, $3, $4, $5, $6, null, 1, $7, $8, $9, $10, $11, $12, $13, $14)

-- name: count_interruption
insert into tries (job, stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues)
values ($1, $2, 0, 0, 1, 1, 0)
on conflict (job, stage) do update set
  interruptions = tries.interruptions + 1, interruptions_ever = tries.interruptions_ever + 1
returning interruptions

-- name: set_lock
update job_records set lock = $2 where id = $1
