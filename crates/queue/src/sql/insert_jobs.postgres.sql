insert into job_records
  (id, pipeline, subject, lock, batch, collection, priority, payload, targets, workspace, needs, added_at, added_by)
select r.id, $2, r.subject, r.lock, r.batch, r.collection, r.priority, r.payload, r.targets, r.workspace, r.needs, $1, $3
from unnest(
  $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::smallint[], $10::bytea[], $11::text[],
  $12::text[], $13::text[])
  as r (id, subject, lock, batch, collection, priority, payload, targets, workspace, needs)
