insert into minutes (minute, worker, stage, succeeded, errors)
select $1, $2, r.stage, r.succeeded, r.errors
from unnest($3::bigint[], $4::bigint[], $5::bigint[]) as r (stage, succeeded, errors)
on conflict (stage, minute, worker) do update set
  succeeded = minutes.succeeded + excluded.succeeded, errors = minutes.errors + excluded.errors
