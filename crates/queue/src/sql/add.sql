-- Adding jobs: I1, an acknowledged add is never lost.

-- name: enter_pipeline (postgres)
select pg_advisory_xact_lock_shared(1094927183, cast(cast($1 as bigint) as integer))

-- name: add_at_once (postgres)
-- A job's record and its place in the line, if nothing is held and the queue is there; else no row, and
-- nothing is done. A job whose lock has an owner is parked, with the owner's row locked as in
-- ahead_in_line. Of the two ids returned the first is the job's: another one's than the second, which
-- is new, if it was merged. Then there is a record already.
with fresh as materialized (
  select nextval('job_ids') as id
), owner as materialized (
  select id from leases where lock = $7 for key share skip locked
), line as (
  insert into waiting
    (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, since)
  select fresh.id, $2, case when $4::smallint = 0 and exists (select 1 from owner) then 1 else $4::smallint end,
    $5, $6, $7, $8, 0, $9, $10, $11, $12, $13, $1
  from fresh, pipelines p
  where p.id = $3 and p.deleted_at is null and not exists (select 1 from holds)
  on conflict (lock, coalesce_key) do update set
    priority = least(waiting.priority, excluded.priority), due = least(waiting.due, excluded.due)
  returning id
), record as (
  insert into job_records
    (id, pipeline, subject, lock, batch, collection, priority, payload, targets, workspace, needs, added_at, added_by)
  select fresh.id, $3, $14, $7, $9, $10, $5, $15, $11, $12, $13, $1, $16
  from fresh, line where line.id = fresh.id
)
select line.id, fresh.id from line, fresh

-- name: enter_adds (sqlite)
select case when exists (select 1 from holds) then 1 else 0 end
from pipelines where id = $1 and deleted_at is null

-- name: enter_adds (postgres)
-- An id for each job, none if the queue is gone; and who stands before it in the line for its lock,
-- locked as in ahead_in_line. All in one round trip.
with owners as (
  select lock, id from leases where lock = any ($3::text[]) for key share skip locked
), ready as (
  select lock, id from waiting
  where $2::bigint = 1 and lock = any ($3::text[]) and state in (0, 1)
  for share skip locked
)
select nextval('job_ids'), case when exists (select 1 from holds) then 1 else 0 end, null, 0
from pipelines p cross join unnest($3::text[])
where p.id = $1 and p.deleted_at is null
union all
select id, 0, lock, 1 from owners
union all
select id, 0, lock, 0 from ready

-- name: insert_waiting (sqlite)
insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, since)
values ($3, $2, $4, $5, $6, $7, $8, 0, $9, $10, $11, $12, $13, $14, $1)
on conflict (lock, coalesce_key) do nothing

-- name: insert_waiting (postgres)
insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, since)
select r.id, $2, r.state, r.priority, r.due, r.lock, r.coalesce_key, 0, r.batch, r.collection, r.targets, r.workspace,
  r.needs, r.blocked_on, $1
from unnest(
  $3::bigint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::text[], $8::text[], $9::bigint[], $10::text[],
  $11::text[], $12::text[], $13::text[], $14::text[])
  as r (id, state, priority, due, lock, coalesce_key, batch, collection, targets, workspace, needs, blocked_on)
on conflict (lock, coalesce_key) do update set
  priority = least(waiting.priority, excluded.priority), due = least(waiting.due, excluded.due)
returning id, lock, coalesce_key

-- name: merge_waiting
update waiting set
  priority = case when $3 < priority then $3 else priority end, due = case when $4 < due then $4 else due end
where lock = $1 and coalesce_key = $2
returning id

-- name: insert_jobs (sqlite)
insert into job_records
  (id, pipeline, subject, lock, batch, collection, priority, payload, targets, workspace, needs, added_at, added_by)
values ($4, $2, $5, $6, $7, $8, $9, $10, $11, $12, $13, $1, $3)

-- name: insert_jobs (postgres)
insert into job_records
  (id, pipeline, subject, lock, batch, collection, priority, payload, targets, workspace, needs, added_at, added_by)
select r.id, $2, r.subject, r.lock, r.batch, r.collection, r.priority, r.payload, r.targets, r.workspace, r.needs, $1, $3
from unnest(
  $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::smallint[], $10::bytea[], $11::text[],
  $12::text[], $13::text[])
  as r (id, subject, lock, batch, collection, priority, payload, targets, workspace, needs)

-- name: renew_payload
update job_records set payload = $2, priority = case when priority < $3 then priority else $3 end where id = $1
