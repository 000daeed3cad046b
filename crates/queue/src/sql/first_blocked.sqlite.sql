select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at, t.attempts, null,
  case when w.begun = 1 then (select token from started where lock = w.lock and id = w.id) end
from waiting w
left join job_records j on j.id = w.id
left join tries t on t.job = w.id and t.stage = $2
where w.state = 4 and w.blocked_on = $1 and w.stage = $2
order by w.since, w.id limit $3
