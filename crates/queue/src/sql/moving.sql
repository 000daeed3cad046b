-- Runs that succeeded and have another stage before them.

-- name: carry_context (sqlite)
select w.workspaces
from workers w
where w.id = $1 and w.ended_at is null and w.lease_until >= $2 and not exists (select 1 from pauses)

-- name: carry_context (postgres)
-- The worker's row is locked: a worker that is being ended must not get jobs, for they would stay with it.
select w.workspaces
from workers w
where w.id = $1 and w.ended_at is null and w.lease_until >= $2 and not exists (select 1 from pauses)
for share of w

-- name: first_ready (sqlite)
-- Who would be handed out first in a stage; 0 if someone's time has come who has not been looked at.
select $2, (case
  when exists (select 1 from waiting where stage = $2 and state = 2 and due <= $1) then 0
  else (select priority from waiting where stage = $2 and state = 0 order by priority, due, id limit 1) end)

-- name: first_ready (postgres)
-- Who would be handed out first in a stage; 0 if someone's time has come who has not been looked at.
select r.stage, (case
  when exists (select 1 from waiting where stage = r.stage and state = 2 and due <= $1) then 0
  else (select priority from waiting where stage = r.stage and state = 0 order by priority, due, id limit 1) end)
from unnest($2::bigint[]) as r (stage)

-- name: hand_over
update job_records set
  priority = coalesce($2, priority), targets = coalesce($3, targets), workspace = coalesce($4, workspace),
  needs = coalesce($5, needs)
where id = $1

-- name: insert_moved (sqlite)
insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, since)
select id, $3, 0, priority, $1, lock, null, 1, batch, collection, targets, workspace, needs, $1 from job_records where id = $2

-- name: insert_moved (postgres)
insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, since)
select j.id, r.stage, 0, j.priority, $1, j.lock, null, 1, j.batch, j.collection, j.targets, j.workspace, j.needs, $1
from unnest($2::bigint[], $3::bigint[]) as r (id, stage),
  lateral (select * from job_records where id = r.id offset 0) as j

-- name: carry_runs (sqlite)
-- The lock stays with the job, and the lease with its worker; the token is a new one (I4).
update leases set stage = $4, token = $5, claimed_at = $1, started_at = $1, error_seen = null, progress = null,
  probe = null
where lock = $2 and id = $3

-- name: carry_runs (postgres)
-- The lock stays with the job, and the lease with its worker; the token is a new one (I4).
update leases set stage = ($4::bigint[])[array_position($2::text[], lock)],
  token = ($5::bigint[])[array_position($2::text[], lock)], claimed_at = $1, started_at = $1, error_seen = null,
  progress = null, probe = null
where lock = any ($2::text[]) and id = any ($3::bigint[])
