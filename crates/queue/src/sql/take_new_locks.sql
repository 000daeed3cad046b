-- For PostgreSQL only. As take_locks, for jobs that own none yet: if somebody has one of these locks,
-- all of it fails, and is tried again with take_locks. Asking who has each lock costs almost as much
-- again as taking it.
insert into started (lock, id, stage, worker, token, claimed_at, started_at, probe)
select r.lock, r.id, $2, $1, r.token, $3, r.started_at, r.probe
from unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  as r (lock, id, token, started_at, probe)
