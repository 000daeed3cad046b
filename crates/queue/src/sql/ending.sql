-- How jobs end: the row in `endings`, the row in `failures`.

-- name: insert_failure
insert into failures
  (job, pipeline, subject, lock, stage, failed_at, code, message, target, note, needs_review, recoverable, overtaken)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, 0)

-- name: end_jobs (sqlite)
insert into endings (job, status, stage, ended_at, ended_by, ended_why, token) values ($4, $2, $5, $1, $3, $6, $7)

-- name: end_jobs (postgres)
insert into endings (job, status, stage, ended_at, ended_by, ended_why, token)
select r.job, $2, r.stage, $1, $3, r.why, r.token
from unnest($4::bigint[], $5::bigint[], $6::text[], $7::bigint[]) as r (job, stage, why, token)

-- name: forget_endings (sqlite)
delete from endings where job = $1

-- name: forget_endings (postgres)
delete from endings where job = any ($1::bigint[])

-- name: resolve_failures (sqlite)
-- Earlier failed jobs of the subject in the same collection; rows of one batch never supersede one another,
-- and what was found to be another thing (content 3) stays.
delete from failures
where pipeline = $2 and subject = $3 and job < $1
  and not exists (
    select 1 from job_records mine join job_records other on other.batch = mine.batch
    where mine.id = $1 and other.id = failures.job)
  and (select collection from job_records where id = $1)
    is not distinct from (select collection from job_records where id = failures.job)
  and not exists (
    select 1 from replacements r where r.job = failures.job and r.by_job = $1 and r.content = 3)
returning job, pipeline, stage, (select batch from job_records where job_records.id = failures.job), $1

-- name: resolve_failures (postgres)
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
