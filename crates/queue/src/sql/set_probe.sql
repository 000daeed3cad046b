update targets set probe_job = $2, probe_token = $3 where name = $1 and probe_job is null
