select f.job, f.subject, s.name, f.code, f.message, f.recoverable, i.failed_file
from queue_jobs j join queue_failures f on f.job = j.id join queue_stages s on s.id = f.stage
left join ingests i on i.job = f.job
where j.batch = $1 and j.batch is not null and j.id > $2
order by f.job limit $3
