select s.pipeline_name, s.name, f.subject, j.collection, f.code, f.message, f.failed_at
from queue_failures f join queue_jobs j on j.id = f.job join queue_stages s on s.id = f.stage
where f.job = $1
