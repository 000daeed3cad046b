select j.subject, j.pipeline, j.batch, i.version, i.unchanged, i.summary
from queue_jobs j left join ingests i on i.job = j.id
where j.id = $1
