insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, why, since)
values ($1, $2, $3, $4, $5, $6, null, 1, $7, $8, $9, $10, $11, $12, $13, $14)
