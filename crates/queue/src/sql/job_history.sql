-- A success is the last that happens to a job: its ending, which has the token of the run, is the row.
select job, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token
from (
  select id, job, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token
  from history where job = $1 and id > $2
  union all
  select 9223372036854775807, job, ended_at, ended_by, 'succeeded', stage, cast(1 as smallint), stage, status, ended_why, null, null, token
  from endings where job = $1 and token is not null
) as h
order by id limit $3
