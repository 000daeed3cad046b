insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, since)
values ($3, $2, $4, $5, $6, $7, $8, 0, $9, $10, $11, $12, $13, $14, $1)
on conflict (lock, coalesce_key) do nothing
