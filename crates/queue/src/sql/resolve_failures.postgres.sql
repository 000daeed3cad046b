delete from failures using unnest($1::bigint[], $2::bigint[], $3::text[]) as r (id, pipeline, subject)
where failures.pipeline = r.pipeline and failures.subject = r.subject and failures.job <> r.id
returning failures.job, failures.pipeline, failures.stage, (select batch from job_records where job_records.id = failures.job), r.id
