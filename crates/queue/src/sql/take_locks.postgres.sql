-- I3: the primary key decides who owns the lock; a job that owns it already gets a new lease.
insert into started (lock, id, stage, worker, token, claimed_at, started_at, probe)
select r.lock, r.id, $2, $1, r.token, $3, r.started_at, r.probe
from unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  as r (lock, id, token, started_at, probe)
on conflict (lock) do update set
  stage = excluded.stage, worker = excluded.worker, token = excluded.token, claimed_at = excluded.claimed_at,
  started_at = excluded.started_at, probe = excluded.probe
where started.id = excluded.id and started.worker is null
returning id
