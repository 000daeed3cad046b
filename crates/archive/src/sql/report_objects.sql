select j.id, j.subject, j.status, i.version, i.unchanged, i.summary, j.ended_by, j.ended_why, r.by_job, k.batch, r.content
from jobs j left join ingests i on i.job = j.id
left join replacements r on r.job = j.id and r.at is not null
left join job_records k on k.id = r.by_job
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status in (4, 5)
order by j.id limit $3
