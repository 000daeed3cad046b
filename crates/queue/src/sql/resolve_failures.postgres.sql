with gone as materialized (
  select f.job, r.id as by
  from unnest($1::bigint[], $2::bigint[], $3::text[]) as r (id, pipeline, subject),
    lateral (
      select job from failures where pipeline = r.pipeline and subject = r.subject and job <> r.id offset 0
    ) as f
)
delete from failures where job = any (array(select job from gone))
returning job, pipeline, stage, (select batch from job_records where job_records.id = failures.job),
  (select by from gone where gone.job = failures.job limit 1)
