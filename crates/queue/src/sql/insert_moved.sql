insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, since)
select id, $2, 0, priority, $3, lock, null, 1, batch, collection, targets, workspace, needs, $3 from job_records where id = $1
