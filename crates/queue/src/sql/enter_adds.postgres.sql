-- An id for each job, none if the queue is gone; and who stands before it in the line for its lock,
-- locked as in ahead_in_line. All in one round trip.
with owners as (
  select lock, id from started where lock = any ($3::text[]) for key share skip locked
), ready as (
  select lock, id from waiting
  where $2::bigint = 1 and lock = any ($3::text[]) and state in (0, 1)
  for share skip locked
)
select nextval('job_ids'), case when exists (select 1 from holds) then 1 else 0 end, null, 0
from pipelines p cross join unnest($3::text[])
where p.id = $1 and p.deleted_at is null
union all
select id, 0, lock, 1 from owners
union all
select id, 0, lock, 0 from ready
