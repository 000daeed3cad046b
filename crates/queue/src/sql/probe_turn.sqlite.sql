select name from targets where name = $1 and opened_at is not null and probe_job is null and next_probe <= $2
