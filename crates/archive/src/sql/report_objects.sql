select j.id, j.subject, i.version, i.unchanged, i.summary
from queue_jobs j left join ingests i on i.job = j.id
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status = 'succeeded'
order by j.id limit $3
