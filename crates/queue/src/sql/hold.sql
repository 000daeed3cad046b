-- Holds (I9): of a job, a batch or a collection.

-- name: held_names
select kind, name from holds

-- name: held_names_locked (sqlite)
select kind, name from holds

-- name: held_names_locked (postgres)
-- Holds of running jobs are taken away by the transactions that settle their runs: locking them would
-- have such transactions wait for one another.
with groups as materialized (
  select kind, name from holds where kind <> 'job' order by kind, name for share
)
select kind, name from groups
union all
select kind, name from holds where kind = 'job'

-- name: find_hold
select who, at, reason from holds where kind = $1 and name = $2

-- name: take_job_hold
delete from holds where kind = 'job' and name = $1 returning who, reason

-- name: insert_hold
insert into holds (kind, name, who, at, reason) values ($1, $2, $3, $4, $5) on conflict (kind, name) do nothing

-- name: buffered_runs
-- Jobs of a group that are claimed and not started, or one such job.
select s.lock, s.id, s.token, s.worker, s.stage, j.batch
from leases s join job_records j on j.id = s.id
where s.worker is not null and s.started_at is null
  and (cast($1 as bigint) is null or j.batch = $1)
  and (cast($2 as text) is null or j.collection = $2)
  and (cast($3 as bigint) is null or s.id = $3)
order by s.worker, s.lock

-- name: delete_hold
delete from holds where kind = $1 and name = $2

-- name: group_members (sqlite)
select id, stage, lock, due, begun from waiting
where id > $3
  and ($1 is null or batch = $1) and ($2 is null or collection = $2)
  and case when $5 = 1 then state = 3 and blocked_on = $6 else state <> 3 end
order by id limit $4

-- name: group_members (postgres)
select id, stage, lock, due, begun from waiting
where id > $3
  and (cast($1 as bigint) is null or batch = $1) and (cast($2 as text) is null or collection = $2)
  and case when $5::bigint = 1 then state = 3 and blocked_on = $6 else state <> 3 end
order by id limit $4
for update

-- name: all_holds
-- Newest first.
select kind, name, who, at, reason from holds order by at desc, kind, name limit $1

-- name: count_holds
select count(*) from holds

-- name: last_held_event
select who, at, why from history where job = $1 and event = 'held' order by id desc limit 1
