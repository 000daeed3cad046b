-- Jobs that supersede earlier ones, and whether the content is the same.

-- name: note_compared
insert into replacements (job, by_job, content) values ($1, $2, $3)
on conflict (job) do update set by_job = excluded.by_job, content = excluded.content
where replacements.at is null

-- name: note_replaced
-- What was compared is known if it was compared with this job.
insert into replacements (job, by_job, at) values ($1, $2, $3)
on conflict (job) do update set
  content = case when replacements.by_job = excluded.by_job then replacements.content end,
  by_job = excluded.by_job, at = excluded.at

-- name: batch_replaced
-- Rows of a batch that were superseded. There are few of them, so they are looked through first.
select r.job, j.subject, j.batch, r.by_job, k.batch, r.content
from replacements r join job_records j on j.id = r.job left join job_records k on k.id = r.by_job
where +j.batch = $1 and r.at is not null and r.job > $2
order by r.job limit $3

-- name: batch_replaces
-- What rows of a batch have superseded.
select r.job, j.subject, j.batch, r.by_job, k.batch, r.content
from replacements r join job_records k on k.id = r.by_job join job_records j on j.id = r.job
where +k.batch = $1 and r.at is not null and r.by_job between $2 and $3
order by r.by_job, r.job limit $4

-- name: batch_replaced_count
select count(*), coalesce(cast(sum(case when r.content = 1 then 1 else 0 end) as bigint), 0)
from replacements r join job_records j on j.id = r.job
where +j.batch = $1 and r.at is not null

-- name: job_replacement
select r.job, j.subject, j.batch, r.by_job, k.batch, r.content
from replacements r join job_records j on j.id = r.job left join job_records k on k.id = r.by_job
where r.job = $1 and r.at is not null

-- name: job_replaces
select r.job, j.subject, j.batch, r.by_job, k.batch, r.content
from replacements r join job_records j on j.id = r.job left join job_records k on k.id = r.by_job
where r.by_job = $1 and r.at is not null
order by r.job
