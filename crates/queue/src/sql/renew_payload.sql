update job_records set payload = $2, priority = case when priority < $3 then priority else $3 end where id = $1
