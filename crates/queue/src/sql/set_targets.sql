update job_records set targets = $2 where id = $1
