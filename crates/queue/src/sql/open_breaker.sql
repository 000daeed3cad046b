update targets set opened_at = $2, next_probe = $3, probe_wait = $4, closing = 0, probe_job = null, probe_token = null
where name = $1
