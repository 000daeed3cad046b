-- What rows of a batch have superseded.
select r.job, j.subject, j.batch, r.by_job, k.batch, r.content
from replacements r join job_records k on k.id = r.by_job join job_records j on j.id = r.job
where +k.batch = $1 and r.at is not null and r.by_job between $2 and $3
order by r.by_job, r.job limit $4
