select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at, t.attempts, null,
  case when w.begun = 1 then (select token from started where lock = w.lock and id = w.id) end
from waiting w
left join job_records j on j.id = w.id
left join tries t on t.job = w.id and t.stage = $1
where w.stage = $1 and w.state = 0 and (w.priority, w.due, w.id) > ($2, $3, $4)
order by w.priority, w.due, w.id limit $5
