-- Newest first.
select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error
from batches where state = 4 and state <> 3 order by id desc limit $1
