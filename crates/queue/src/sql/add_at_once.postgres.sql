-- A job's record and its place in the line, if nothing is held and the queue is there; else no row, and
-- nothing is done. Whoever meets the owner of its lock is parked, with the owner's row locked as in
-- ahead_in_line. Of the two ids returned the first is the job's: another one's than the second, which
-- is new, if it was merged. Then there is a record already.
with fresh as materialized (
  select nextval('job_ids') as id
), owner as materialized (
  select id from started where lock = $7 for key share skip locked
), line as (
  insert into waiting
    (id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, since)
  select fresh.id, $2, case when $4::smallint = 0 and exists (select 1 from owner) then 1 else $4::smallint end,
    $5, $6, $7, $8, 0, $9, $10, $11, $12, $13, $1
  from fresh, pipelines p
  where p.id = $3 and p.deleted_at is null and not exists (select 1 from holds)
  on conflict (lock, coalesce_key) do update set
    priority = least(waiting.priority, excluded.priority), due = least(waiting.due, excluded.due)
  returning id
), record as (
  insert into job_records
    (id, pipeline, subject, lock, batch, collection, priority, payload, targets, workspace, needs, added_at, added_by)
  select fresh.id, $3, $14, $7, $9, $10, $5, $15, $11, $12, $13, $1, $16
  from fresh, line where line.id = fresh.id
)
select line.id, fresh.id from line, fresh
