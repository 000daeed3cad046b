select name, errors, opened_at, next_probe, closing, probe_wait, probe_job, reason from targets order by name
