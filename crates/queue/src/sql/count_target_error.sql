insert into targets (name, errors, closing, probe_wait, reason) values ($1, 1, 0, $2, $3)
on conflict (name) do update set errors = targets.errors + 1, reason = excluded.reason
returning errors, opened_at
