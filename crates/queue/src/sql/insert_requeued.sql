insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, since)
select id, $2, $3, priority, $4, lock, $5, 0, batch, collection, targets, workspace, needs, $6, $4
from job_records where id = $1
