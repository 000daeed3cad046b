-- In their order: each row of the page is looked up as it comes. One range of tokens is for all of them.
select w.id, w.priority, w.due, w.lock, w.begun, w.batch, w.collection, w.targets, w.workspace, w.needs,
  j.subject, j.payload, j.added_at,
  case when w.begun = 1 then (select attempts from tries where job = w.id and stage = $1) end,
  (select nextval('tokens')) * 4096,
  case when w.begun = 1 then (select token from started where lock = w.lock and id = w.id) end
from (
  select id, priority, due, lock, begun, batch, collection, targets, workspace, needs
  from waiting
  where stage = $1 and state = 0 and (priority, due, id) > ($2::smallint, $3::bigint, $4::bigint)
  order by priority, due, id limit $5
  for update skip locked
) w
left join lateral (select subject, payload, added_at from job_records where id = w.id offset 0) as j on true
