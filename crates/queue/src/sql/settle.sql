-- Settling the outcomes of runs (I4: only with the current token).

-- name: settle_context
select
  case when exists (select 1 from targets) then 1 else 0 end,
  case when exists (select 1 from failures) then 1 else 0 end,
  case when exists (select 1 from reservations) then 1 else 0 end,
  case when exists (select 1 from batches where state = 0 and prepared_by is not null) then 1 else 0 end,
  case when exists (select 1 from holds) then 1 else 0 end

-- name: count_minutes (sqlite)
insert into minutes (minute, worker, stage, succeeded, errors) values ($1, $2, $3, $4, $5)
on conflict (stage, minute, worker) do update set
  succeeded = minutes.succeeded + excluded.succeeded, errors = minutes.errors + excluded.errors

-- name: count_minutes (postgres)
insert into minutes (minute, worker, stage, succeeded, errors)
select $1, $2, r.stage, r.succeeded, r.errors
from unnest($3::bigint[], $4::bigint[], $5::bigint[]) as r (stage, succeeded, errors)
on conflict (stage, minute, worker) do update set
  succeeded = minutes.succeeded + excluded.succeeded, errors = minutes.errors + excluded.errors

-- name: release_finished (sqlite)
-- I4: nothing happens without the current token and worker.
delete from leases where lock = $2 and id = $3 and token = $4 and worker = $1

-- name: release_finished (postgres)
-- I4: nothing happens without the current token and worker, also after waiting for someone who changes
-- the row. Tokens come in ascending order, so that each row finds its own by halving; and each row is
-- looked up once, by its key, whatever PostgreSQL believes about the size of the table.
delete from leases
where worker = $1 and lock = any ($2::text[])
  and id = ($3::bigint[])[width_bucket(token, $4::bigint[])]
  and token = ($4::bigint[])[width_bucket(token, $4::bigint[])]
returning token

-- name: job_subject
select subject from job_records where id = $1

-- name: count_attempt
insert into tries (job, stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues)
values ($1, $2, 1, 1, 0, 0, 0)
on conflict (job, stage) do update set attempts = tries.attempts + 1, attempts_ever = tries.attempts_ever + 1
returning attempts
