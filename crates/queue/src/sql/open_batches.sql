-- Those under way, newest first. SQLite takes an index with a condition only if the condition is said.
select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error,
  case when state in (0, 1) and exists (
    select 1 from holds h where h.kind = 'collection' and h.name = batches.collection) then 1 else 0 end
from batches where state in (0, 1, 2, 5) and state <> 3 order by id desc limit $1
