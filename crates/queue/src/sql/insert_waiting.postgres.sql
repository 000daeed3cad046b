insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, since)
select r.id, $2, r.state, r.priority, r.due, r.lock, r.coalesce_key, 0, r.batch, r.collection, r.targets, r.workspace,
  r.needs, r.blocked_on, $1
from unnest(
  $3::bigint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::text[], $8::text[], $9::bigint[], $10::text[],
  $11::text[], $12::text[], $13::text[], $14::text[])
  as r (id, state, priority, due, lock, coalesce_key, batch, collection, targets, workspace, needs, blocked_on)
on conflict (lock, coalesce_key) do update set
  priority = least(waiting.priority, excluded.priority), due = least(waiting.due, excluded.due)
returning id, lock, coalesce_key
