-- Claiming: taking the locks of ready jobs for a worker (I3, I4).

-- name: claim_context (sqlite)
select w.lease_until, case when w.ended_at is null then 0 else 1 end, w.capacity, w.workspaces,
  case when exists (
    select 1 from pauses
    where kind = 'all' or (kind = 'pipeline' and id = $3) or (kind = 'stage' and id = $2)) then 1 else 0 end,
  case when exists (select 1 from holds) then 1 else 0 end,
  case when exists (select 1 from targets) then 1 else 0 end,
  case when exists (select 1 from waiting where stage = $2 and state = 2 and due <= $4) then 1 else 0 end,
  case when exists (select 1 from failures) then 1 else 0 end,
  case when exists (select 1 from resources) then 1 else 0 end,
  (select min(due) from waiting where stage = $2 and state = 2)
from workers w where w.id = $1

-- name: claim_context (postgres)
-- The worker's row is locked: a worker that is being ended must not get jobs, for they would stay with it.
-- Every table is looked at once: a job that comes while all is quiet waits for each look.
select w.lease_until, case when w.ended_at is null then 0 else 1 end, w.capacity, w.workspaces,
  case when exists (
    select 1 from pauses
    where id = case kind when 'pipeline' then $3 when 'stage' then $2 else id end) then 1 else 0 end,
  case when exists (select 1 from holds) then 1 else 0 end,
  case when exists (select 1 from targets) then 1 else 0 end,
  case when delayed.due <= $4 then 1 else 0 end,
  case when exists (select 1 from failures) then 1 else 0 end,
  case when exists (select 1 from resources) then 1 else 0 end,
  delayed.due
from workers w, (select min(due) as due from waiting where stage = $2 and state = 2) as delayed
where w.id = $1
for share of w

-- name: ready_jobs (sqlite)
select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at, t.attempts, null,
  case when w.begun = 1 then (select token from leases where lock = w.lock and id = w.id) end
from waiting w
left join job_records j on j.id = w.id
left join tries t on t.job = w.id and t.stage = $1
where w.stage = $1 and w.state = 0 and (w.priority, w.due, w.id) > ($2, $3, $4)
order by w.priority, w.due, w.id limit $5

-- name: ready_jobs (postgres)
-- In their order: each row of the page is looked up as it comes. One range of tokens is for all of them.
select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at,
  case when w.begun = 1 then (select attempts from tries where job = w.id and stage = $1) end,
  (select nextval('tokens')) * 4096,
  case when w.begun = 1 then (select token from leases where lock = w.lock and id = w.id) end
from (
  select id, priority, due, lock, begun, batch, collection, targets, workspace, needs
  from waiting
  where stage = $1 and state = 0 and (priority, due, id) > ($2::smallint, $3::bigint, $4::bigint)
  order by priority, due, id limit $5
  for update skip locked
) w
left join lateral (select subject, payload, added_at from job_records where id = w.id offset 0) as j on true

-- name: claim_lane (postgres)
select case when pg_try_advisory_xact_lock(1094927184, cast(cast($1 as bigint) * 2 as integer))
    or pg_try_advisory_xact_lock(1094927184, cast(cast($1 as bigint) * 2 + 1 as integer)) then 1 else 0 end

-- name: enter_claims (postgres)
select pg_advisory_xact_lock_shared(1094927182, 1)

-- name: due_jobs (sqlite)
select id, lock from waiting where stage = $1 and state = 2 and due <= $2 order by due limit $3

-- name: due_jobs (postgres)
select id, lock from waiting where stage = $1 and state = 2 and due <= $2 order by due limit $3
for update skip locked

-- name: first_blocked (sqlite)
select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at, t.attempts, null,
  case when w.begun = 1 then (select token from leases where lock = w.lock and id = w.id) end
from waiting w
left join job_records j on j.id = w.id
left join tries t on t.job = w.id and t.stage = $2
where w.state = 4 and w.blocked_on = $1 and w.stage = $2
order by w.since, w.id limit $3

-- name: first_blocked (postgres)
select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at, (select attempts from tries where job = w.id and stage = $2),
  nextval('tokens') * 4096,
  case when w.begun = 1 then (select token from leases where lock = w.lock and id = w.id) end
from waiting w
left join lateral (select subject, payload, added_at from job_records where id = w.id offset 0) as j on true
where w.state = 4 and w.blocked_on = $1 and w.stage = $2
order by w.since, w.id limit $3
for update of w skip locked

-- name: probe_turn (sqlite)
select name from targets where name = $1 and opened_at is not null and probe_job is null and next_probe <= $2

-- name: probe_turn (postgres)
select name from targets where name = $1 and opened_at is not null and probe_job is null and next_probe <= $2
for update skip locked

-- name: take_locks (sqlite)
-- I3: the primary key decides who owns the lock; a job that owns it already gets a new lease.
insert into leases (lock, id, stage, worker, token, claimed_at, started_at, probe)
values ($4, $5, $2, $1, $6, $3, $7, $8)
on conflict (lock) do update set
  stage = excluded.stage, worker = excluded.worker, token = excluded.token, claimed_at = excluded.claimed_at,
  started_at = excluded.started_at, probe = excluded.probe
where leases.id = excluded.id and leases.worker is null

-- name: take_locks (postgres)
-- I3: the primary key decides who owns the lock; a job that owns it already gets a new lease.
insert into leases (lock, id, stage, worker, token, claimed_at, started_at, probe)
select r.lock, r.id, $2, $1, r.token, $3, r.started_at, r.probe
from unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  as r (lock, id, token, started_at, probe)
on conflict (lock) do update set
  stage = excluded.stage, worker = excluded.worker, token = excluded.token, claimed_at = excluded.claimed_at,
  started_at = excluded.started_at, probe = excluded.probe
where leases.id = excluded.id and leases.worker is null
returning id

-- name: take_new_locks (postgres)
-- As take_locks and leave_waiting, for jobs that own no lock yet: if another job has
-- one of these locks, the statement fails, and those two are tried. Asking who has each lock costs
-- almost as much again as taking it.
with gone as (
  delete from waiting where id = any ($5::bigint[])
)
insert into leases (lock, id, stage, worker, token, claimed_at, started_at, probe)
select r.lock, r.id, $2, $1, r.token, $3, r.started_at, r.probe
from unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  as r (lock, id, token, started_at, probe)

-- name: leave_waiting (sqlite)
delete from waiting where id = $1

-- name: leave_waiting (postgres)
delete from waiting where id = any ($1::bigint[])

-- name: mark_overtaken (sqlite)
update failures set overtaken = 1 where lock = $1

-- name: mark_overtaken (postgres)
update failures set overtaken = 1 where lock = any ($1::text[])

-- name: next_due
select min(due) from waiting where stage = $1 and state = 2

-- name: anything_left
-- Anything in this stage or an earlier one that is not held, or that a batch still has to bring: it
-- may still come.
select s.id
from stages me join stages s on s.pipeline = me.pipeline and s.position <= me.position
where me.id = $1
  and (exists (select 1 from waiting w where w.stage = s.id and w.state <> 3)
    or exists (select 1 from leases r where r.stage = s.id and r.worker is not null)
    or exists (select 1 from batches b
      where b.state in (1, 2, 5) and b.state = 1 and b.held = 0 and b.pipeline = me.pipeline
        and exists (select 1 from batch_entries e where e.batch = b.id)))
limit 1

-- name: waiting_workspace
select workspace from waiting where id = $1

-- name: stop_claims (postgres)
select pg_advisory_xact_lock(1094927182, 1)
