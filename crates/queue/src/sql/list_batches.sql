select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error
from batches where id < $1 and (cast($2 as bigint) is null or state = $2) order by id desc limit $3
