-- Earlier failed jobs of the subject in the same collection; rows of one batch never supersede one another,
-- and what was found to be another thing (content 3) stays.
with gone as materialized (
  select f.job, r.id as by
  from unnest($1::bigint[], $2::bigint[], $3::text[]) as r (id, pipeline, subject),
    lateral (select batch, collection from job_records where id = r.id offset 0) as mine,
    lateral (
      select job from failures where pipeline = r.pipeline and subject = r.subject and job < r.id offset 0
    ) as f,
    lateral (select batch, collection from job_records where id = f.job offset 0) as other
  where (other.batch is null or mine.batch is null or other.batch <> mine.batch)
    and other.collection is not distinct from mine.collection
    and not exists (select 1 from replacements n where n.job = f.job and n.by_job = r.id and n.content = 3)
)
delete from failures where job = any (array(select job from gone))
returning job, pipeline, stage, (select batch from job_records where job_records.id = failures.job),
  (select max(by) from gone where gone.job = failures.job)
