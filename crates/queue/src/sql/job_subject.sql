select subject from job_records where id = $1
