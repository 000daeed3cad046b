update job_records set lock = $2 where id = $1
