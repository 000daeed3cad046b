select p.name, s.name, f.subject, j.collection, f.code, f.message, f.failed_at
from failures f join jobs j on j.id = f.job join stages s on s.id = f.stage
join pipelines p on p.id = f.pipeline
where f.job = $1
