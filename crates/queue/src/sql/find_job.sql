select j.id, j.pipeline, j.subject, j.lock, j.batch, j.collection, j.priority, j.status, j.stage,
  w.state, w.stage, w.begun, w.due, w.blocked_on,
  s.stage, s.worker, s.cancel_by
from jobs j
left join waiting w on w.id = j.id
left join started s on s.lock = j.lock and s.id = j.id
where j.id = $1
