-- Longest first.
select s.id, j.subject, s.stage, s.started_at, s.progress, k.name
from started s join job_records j on j.id = s.id left join workers k on k.id = s.worker
where s.worker is not null and s.started_at < $1 order by s.started_at, s.id limit $2
