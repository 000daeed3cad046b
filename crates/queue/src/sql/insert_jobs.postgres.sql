insert into jobs
  (id, pipeline, subject, lock, batch, collection, priority, payload, status, stage, targets, workspace, needs, added_at, added_by)
select r.id, $2, r.subject, r.lock, r.batch, r.collection, r.priority, r.payload, 0, $3, r.targets, r.workspace, r.needs,
  $1, $4
from unnest(
  $5::bigint[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::smallint[], $11::bytea[], $12::text[],
  $13::text[], $14::text[])
  as r (id, subject, lock, batch, collection, priority, payload, targets, workspace, needs)
