-- The overview: what needs attention, newest or longest first.

-- name: count_blocked
-- What jobs wait for, held ones too, from the index alone.
select blocked_on, count(*), min(since) from waiting where blocked_on is not null group by blocked_on order by 2 desc
limit 100

-- name: failure_groups
select pipeline, code, count(*), cast(sum(needs_review) as bigint), min(failed_at), max(failed_at), max(job)
from failures group by pipeline, code order by 3 desc, 2 limit $1

-- name: count_failure_groups
select count(*), coalesce(cast(sum(jobs) as bigint), 0)
from (select count(*) as jobs from failures group by pipeline, code) as kinds

-- name: long_runs
-- Longest first.
select s.id, j.subject, s.stage, s.started_at, s.progress, k.name
from leases s join job_records j on j.id = s.id left join workers k on k.id = s.worker
where s.worker is not null and s.started_at < $1 order by s.started_at, s.id limit $2

-- name: count_long_runs
select count(*) from leases where worker is not null and started_at < $1

-- name: count_batches
-- Of all but the completed ones, of which there may be very many. A batch of a held collection counts as held.
select state, count(*), cast(sum(is_held) as bigint), cast(sum(open) as bigint), min(created_at), max(updated_at)
from (
  select state, open, created_at, updated_at,
    case when held = 1 or (state in (0, 1) and exists (
      select 1 from holds h where h.kind = 'collection' and h.name = batches.collection)) then 1 else 0 end as is_held
  from batches where state <> 3) as unfinished
group by state

-- name: open_batches
-- Those under way, newest first. SQLite takes an index with a condition only if the condition is said.
select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error,
  case when state in (0, 1) and exists (
    select 1 from holds h where h.kind = 'collection' and h.name = batches.collection) then 1 else 0 end
from batches where state in (0, 1, 2, 5) and state <> 3 order by id desc limit $1

-- name: failed_batches
-- Newest first.
select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error,
  case when state in (0, 1) and exists (
    select 1 from holds h where h.kind = 'collection' and h.name = batches.collection) then 1 else 0 end
from batches where state = 4 and state <> 3 order by id desc limit $1
