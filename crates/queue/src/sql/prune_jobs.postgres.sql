delete from job_records where id = any ($1::bigint[])
