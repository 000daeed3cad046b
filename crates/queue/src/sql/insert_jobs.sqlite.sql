insert into job_records
  (id, pipeline, subject, lock, batch, collection, priority, payload, targets, workspace, needs, added_at, added_by)
values ($4, $2, $5, $6, $7, $8, $9, $10, $11, $12, $13, $1, $3)
