insert into failures
  (job, pipeline, subject, lock, stage, failed_at, code, message, target, note, needs_review, recoverable, overtaken)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, 0)
