insert into batches
  (id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled, moved, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, 0, 0, $7, 0, 0, 0, 0, 0, 0, $8, $8)
