insert into minutes (minute, worker, stage, succeeded, errors) values ($1, $2, $3, $4, $5)
on conflict (stage, minute, worker) do update set
  succeeded = minutes.succeeded + excluded.succeeded, errors = minutes.errors + excluded.errors
