-- Those under way, newest first. SQLite takes an index with a condition only if the condition is said.
select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error
from batches where state in (0, 1, 2, 5) and state <> 3 order by id desc limit $1
