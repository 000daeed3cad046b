insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, since)
select id, $3, 0, priority, $1, lock, null, 1, batch, collection, targets, workspace, needs, $1 from job_records where id = $2
