select r.job, j.subject, j.batch, r.by_job, k.batch, r.content
from replacements r join job_records j on j.id = r.job left join job_records k on k.id = r.by_job
where r.by_job = $1 and r.at is not null
order by r.job
