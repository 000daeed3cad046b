-- I3: the primary key decides who owns the lock; a job that owns it already gets a new lease.
insert into started (lock, id, stage, worker, token, claimed_at, started_at, probe)
values ($4, $5, $2, $1, $6, $3, $7, $8)
on conflict (lock) do update set
  stage = excluded.stage, worker = excluded.worker, token = excluded.token, claimed_at = excluded.claimed_at,
  started_at = excluded.started_at, probe = excluded.probe
where started.id = excluded.id and started.worker is null
