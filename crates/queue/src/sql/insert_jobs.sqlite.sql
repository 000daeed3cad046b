insert into jobs
  (id, pipeline, subject, lock, batch, collection, priority, payload, status, stage, targets, workspace, needs, added_at, added_by)
values ($5, $2, $6, $7, $8, $9, $10, $11, 0, $3, $12, $13, $14, $1, $4)
