select s.token, s.stage, case when s.started_at is null then 0 else 1 end, s.cancel_by, s.cancel_why, s.probe,
  j.subject, j.priority, j.collection, j.targets, j.workspace, j.needs, j.batch, j.payload, j.added_at,
  (select attempts from tries where job = $3 and stage = $5), null
from started s join job_records j on j.id = s.id
where s.lock = $2 and s.id = $3 and s.token = $4 and s.worker = $1
