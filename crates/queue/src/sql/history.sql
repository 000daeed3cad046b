-- History: one row for every change of stage or status (I8).

-- name: insert_history (sqlite)
insert into history (job, id, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: insert_history (postgres)
-- The server numbers the rows itself, in their order: $2 is null here.
insert into history (job, id, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token)
select r.job, coalesce(r.id, nextval('history_ids')), r.at, r.who, r.event, r.from_stage, r.from_status, r.to_stage,
  r.to_status, r.why, r.code, r.target, r.token
from unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::smallint[], $8::bigint[],
  $9::smallint[], $10::text[], $11::text[], $12::text[], $13::bigint[])
  as r (job, id, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token)

-- name: job_history
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
