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
