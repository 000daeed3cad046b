insert into waiting
  (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, since)
select j.id, r.stage, 0, j.priority, $1, j.lock, null, 1, j.batch, j.collection, j.targets, j.workspace, j.needs, $1
from unnest($2::bigint[], $3::bigint[]) as r (id, stage),
  lateral (select * from job_records where id = r.id offset 0) as j
