-- The runs of leases that are good, locked in the order given; with each the tries of the stage after it.
select s.token, s.stage, case when s.started_at is null then 0 else 1 end, s.cancel_by, s.cancel_why, s.probe,
  j.subject, j.priority, j.collection, j.targets, j.workspace, j.needs, j.batch, j.payload, j.added_at,
  (select attempts from tries where job = r.id and stage = r.next), nextval('tokens') * 4096
from unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) as r (lock, id, token, next),
  lateral (
    select * from started where lock = r.lock and id = r.id and token = r.token and worker = $1 offset 0 for update
  ) as s,
  lateral (select * from job_records where id = r.id offset 0) as j
