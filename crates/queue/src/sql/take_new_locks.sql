-- For PostgreSQL only. As take_locks and leave_waiting, for jobs that own no lock yet: if somebody has
-- one of these locks, all of it fails, and is tried again with those two. Asking who has each lock costs
-- almost as much again as taking it.
with gone as (
  delete from waiting where id = any ($5::bigint[])
)
insert into started (lock, id, stage, worker, token, claimed_at, started_at, probe)
select r.lock, r.id, $2, $1, r.token, $3, r.started_at, r.probe
from unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  as r (lock, id, token, started_at, probe)
