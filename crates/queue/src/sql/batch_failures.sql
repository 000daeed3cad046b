select f.job, f.subject, 3, f.stage, f.code, f.message, null
from job_records j join failures f on f.job = j.id
where j.batch = $1 and j.batch is not null order by f.job limit $2
