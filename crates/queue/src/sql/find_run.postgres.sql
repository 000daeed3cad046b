select s.stage, case when s.started_at is null then 0 else 1 end, s.cancel_by, s.cancel_why, s.probe,
  j.subject, j.priority, j.collection, j.targets, j.workspace, j.needs, j.batch
from started s join job_records j on j.id = s.id
where s.lock = $1 and s.id = $2 and s.token = $3 and s.worker = $4
for update of s
