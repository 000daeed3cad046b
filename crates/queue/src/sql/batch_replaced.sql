-- Rows of a batch that were superseded. There are few of them, so they are looked through first.
select r.job, j.subject, j.batch, r.by_job, k.batch, r.content
from replacements r join job_records j on j.id = r.job left join job_records k on k.id = r.by_job
where +j.batch = $1 and r.at is not null and r.job > $2
order by r.job limit $3
