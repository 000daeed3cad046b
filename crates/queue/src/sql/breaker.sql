-- Circuit breakers: one row of `targets` for each target that had errors.

-- name: target_down (sqlite)
select name from targets where name = $1 and opened_at is not null

-- name: target_down (postgres)
select name from targets where name = $1 and opened_at is not null
for share

-- name: all_targets
select name, errors, opened_at, next_probe, closing, probe_wait, probe_job, reason from targets order by name

-- name: count_target_error
insert into targets (name, errors, closing, probe_wait, reason) values ($1, 1, 0, $2, $3)
on conflict (name) do update set errors = targets.errors + 1, reason = excluded.reason
returning errors, opened_at

-- name: open_breaker
update targets set opened_at = $2, next_probe = $3, probe_wait = $4, closing = 0, probe_job = null, probe_token = null
where name = $1

-- name: probe_over
update targets set
  probe_job = null, probe_token = null,
  probe_wait = case when probe_wait * $3 > $4 then $4 else probe_wait * $3 end,
  next_probe = $2 + case when probe_wait * $3 > $4 then $4 else probe_wait * $3 end
where name = $1 and opened_at is not null

-- name: job_targets
select targets from job_records where id = $1

-- name: close_breaker
update targets set errors = 0, opened_at = null, next_probe = null, probe_job = null, probe_token = null, closing = 1
where name = $1

-- name: set_probe
update targets set probe_job = $2, probe_token = $3 where name = $1 and probe_job is null

-- name: forget_target
delete from targets where name = $1 and opened_at is null and errors = 0
