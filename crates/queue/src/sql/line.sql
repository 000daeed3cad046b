-- The line in front of a lock: which jobs are ready for it, which are parked behind it.

-- name: blocked_jobs (sqlite)
select id, stage, lock from waiting where blocked_on = $1 and state = $2 order by since, id limit $3

-- name: blocked_jobs (postgres)
select id, stage, lock from waiting where blocked_on = $1 and state = $2 order by since, id limit $3
for update skip locked

-- name: put_aside
update waiting set state = $2, blocked_on = $3, since = $4 where id = $1

-- name: lock_owner
select s.id, s.stage, s.claimed_at, k.name from leases s left join workers k on k.id = s.worker where s.lock = $1

-- name: ahead_in_line (sqlite)
select lock, id, 1 from leases where lock = $2
union all
select lock, id, 0 from waiting where $1 = 1 and lock = $2 and state in (0, 1)

-- name: ahead_in_line (postgres)
-- The row that a job is parked behind stays locked until the parking is committed: a transaction that
-- ends or claims that row waits, and then sees the parked one. What others have locked is skipped.
with owners as (
  select lock, id from leases where lock = any ($2::text[]) for key share skip locked
), ready as (
  select lock, id from waiting
  where $1::bigint = 1 and lock = any ($2::text[]) and state in (0, 1)
  for share skip locked
)
select lock, id, 1 from owners
union all
select lock, id, 0 from ready

-- name: set_state (sqlite)
update waiting set state = $3, since = $1, blocked_on = null, why = null where id = $2

-- name: set_state (postgres)
update waiting set state = ($3::smallint[])[array_position($2::bigint[], id)], since = $1, blocked_on = null, why = null
where id = any ($2::bigint[])

-- name: promote (sqlite)
update waiting set state = 0, since = $1
where id = (select id from waiting where lock = $2 and state = 1 order by id limit 1)
  and not exists (select 1 from waiting where lock = $2 and state = 0)
  and not exists (select 1 from leases where lock = $2)
returning stage

-- name: promote (postgres)
-- The first of each line, locked: after a wait the row is looked at again, and the next one taken if
-- it is gone. The owner of a lock promotes when it frees the lock.
select w.id, w.stage, w.state
from unnest($1::text[]) as f (lock),
  lateral (
    select id, stage, state from waiting where lock = f.lock and state in (0, 1) order by state, id limit 1 for update
  ) as w
where (select 1 from leases s where s.lock = f.lock) is null

-- name: anybody_parked
select 1 from waiting where state = 1 limit 1

-- name: wanted_locks (sqlite)
select lock from waiting where lock = $1 and state = 1 limit 1

-- name: wanted_locks (postgres)
select distinct lock from waiting where lock = any ($1::text[]) and state = 1

-- name: waiting_of_key
select id from waiting where lock = $1 and coalesce_key = $2

-- name: first_of_lock
select id from waiting where lock = $1 and id <> $2 and state in (0, 1) order by state, id limit 1

-- name: place_in_line
select count(*) from (
  select 1 as one from waiting w, waiting me
  where me.id = $1 and w.stage = me.stage and w.state = 0 and (w.priority, w.due, w.id) < (me.priority, me.due, me.id)
  limit $2
) as ahead
