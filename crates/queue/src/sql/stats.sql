-- Figures of queues and stages.

-- name: head_of_line
select w.id from waiting w
where w.stage = $1 and w.state = 0 and not exists (select 1 from leases s where s.stage = $1 and s.worker is not null)
order by w.priority, w.due, w.id limit 1

-- name: count_waiting (sqlite)
-- Each state is counted from the index that has it alone: most jobs are ready, and none of their rows is read.
select c.stage, c.state, c.count, (select j.added_at from job_records j where j.id = c.oldest)
from (
  select stage, 0 as state, count(*) as count, min(id) as oldest from waiting where state = 0 group by stage
  union all
  select stage, 1, count(*), min(id) from waiting where state = 1 group by stage
  union all
  select stage, 2, count(*), min(id) from waiting where state = 2 group by stage
  union all
  select stage, state, count(*), min(id) from waiting where blocked_on is not null group by stage, state
) as c

-- name: count_waiting (postgres)
select c.stage, c.state, c.count, (select j.added_at from job_records j where j.id = c.oldest)
from (select stage, state, count(*) as count, min(id) as oldest from waiting group by stage, state) as c

-- name: count_running
select stage, count(started_at), count(*) - count(started_at) from leases where worker is not null group by stage

-- name: count_failed
select stage, count(*) from failures group by stage

-- name: stage_rates
select stage, cast(sum(succeeded) as bigint), cast(sum(errors) as bigint),
  cast(sum(case when minute >= $2 and minute < $3 then succeeded else 0 end) as bigint)
from minutes where minute > $1 group by stage

-- name: count_failures
select pipeline, code, count(*) from failures
where cast($1 as bigint) is null or pipeline = $1
group by pipeline, code order by count(*) desc limit 50

-- name: stuck_jobs
-- Retries and waits do not move a job: one whose history is kept has been in its stage since it was
-- added, requeued or moved there.
select id, subject, stage, since from (
  select w.id, j.subject, w.stage, case when w.begun = 1 then coalesce((
      select max(h.at) from history h
      where h.job = w.id and h.event in ('added', 'moved', 'requeued') and h.at <= w.since
    ), w.since) else w.since end as since
  from waiting w join job_records j on j.id = w.id
  where cast($1 as bigint) is null or j.pipeline = $1
  union all
  select s.id, j.subject, s.stage, coalesce((
      select max(h.at) from history h
      where h.job = s.id and h.event in ('added', 'moved', 'requeued') and h.at <= s.claimed_at
    ), s.claimed_at) as since
  from leases s join job_records j on j.id = s.id
  where s.worker is not null and (cast($1 as bigint) is null or j.pipeline = $1)
) as still
where since < $2
order by 4, 1 limit $3
