-- What a person does with a job: find, cancel, requeue, retry, review, discard.

-- name: request_cancel
update leases set cancel_by = $3, cancel_why = $4 where lock = $1 and id = $2

-- name: cancel_waiting
delete from waiting where id = $1

-- name: delete_failure
delete from failures where job = $1

-- name: waiting_ids
select id from waiting where stage = $1 order by id limit $2

-- name: set_discarded
update failures set discarded = 1 where job = $1 and discarded = 0

-- name: forget_all_checkpoints
delete from checkpoints where job = $1

-- name: lock_job (postgres)
-- In the one order for locks: batch, leases, waiting, failures.
with b as (
  select b.id from batches b join job_records j on j.batch = b.id where j.id = $1 for no key update of b
), s as (
  select s.id from leases s join job_records j on j.lock = s.lock and j.id = s.id where j.id = $1 for update of s
), w as (
  select id from waiting where id = $1 for update
), f as (
  select job from failures where job = $1 for update
)
select 'batch' from b union all select 'lease' from s union all select 'waiting' from w
union all select 'failed' from f

-- name: find_job
select j.id, j.pipeline, j.subject, j.lock, j.batch, j.collection, j.priority, j.status, j.stage,
  w.state, w.stage, w.begun, w.due, w.blocked_on,
  s.stage, s.worker, s.cancel_by
from jobs j
left join waiting w on w.id = j.id
left join leases s on s.lock = j.lock and s.id = j.id
where j.id = $1

-- name: take_failure
delete from failures where job = $1 returning stage, recoverable, overtaken, discarded

-- name: forget_checkpoints
delete from checkpoints where job = $1 and stage = $2

-- name: reset_tries
update tries set attempts = 0, interruptions = 0 where job = $1 and stage = $2

-- name: count_requeue
insert into tries (job, stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues)
values ($1, $2, 0, 0, 0, 0, 1)
on conflict (job, stage) do update set requeues = tries.requeues + 1

-- name: insert_requeued
insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, since)
select id, $2, $3, priority, $4, lock, $5, 0, batch, collection, targets, workspace, needs, $6, $4
from job_records where id = $1

-- name: send_back
update waiting set stage = $2, since = $3 where id = $1

-- name: send_back_lock
update leases set stage = $3 where lock = $1 and id = $2

-- name: failed_jobs
-- With each failed job, the newest failed one that takes its place: of its pipeline, collection
-- and subject, not of its batch, and fitting the filter too.
select f.job,
  coalesce((select max(n.job) from failures n join job_records k on k.id = n.job
   where n.pipeline = f.pipeline and n.subject = f.subject and n.job > f.job and n.recoverable >= f.recoverable
     and (k.batch is null or j.batch is null or k.batch <> j.batch)
     and k.collection is not distinct from j.collection
     and (cast($2 as bigint) is null or n.stage = $2)
     and (cast($3 as text) is null or n.code = $3)
     and (cast($4 as text) is null or n.target = $4)
     and (cast($5 as bigint) is null or k.batch = $5)), f.job),
  f.recoverable
from failures f join job_records j on j.id = f.job
where f.job > $6
  and (cast($1 as bigint) is null or f.pipeline = $1)
  and (cast($2 as bigint) is null or f.stage = $2)
  and (cast($3 as text) is null or f.code = $3)
  and (cast($4 as text) is null or f.target = $4)
  and (cast($5 as bigint) is null or j.batch = $5)
order by f.job limit $7

-- name: set_seen
update failures set needs_review = 0 where job = $1 and needs_review = 1
