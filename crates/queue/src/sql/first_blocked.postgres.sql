select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at, (select attempts from tries where job = w.id and stage = $2),
  nextval('tokens') * 4096,
  case when w.begun = 1 then (select token from started where lock = w.lock and id = w.id) end
from waiting w
left join lateral (select subject, payload, added_at from job_records where id = w.id offset 0) as j on true
where w.state = 4 and w.blocked_on = $1 and w.stage = $2
order by w.since, w.id limit $3
for update of w skip locked
