delete from failures where pipeline = $2 and subject = $3 and job <> $1
returning job, pipeline, stage, (select batch from job_records where job_records.id = failures.job), $1
