delete from job_records where id = $1
