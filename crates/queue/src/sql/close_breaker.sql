update targets set errors = 0, opened_at = null, next_probe = null, probe_job = null, probe_token = null, closing = 1
where name = $1
