select j.subject, j.pipeline, j.batch, i.version, i.unchanged, i.summary
from job_records j left join ingests i on i.job = j.id
where j.id = $1
