-- The row that a job is parked behind stays locked until the parking is committed: whoever ends or
-- claims that row waits, and then sees the parked one. What others have locked is skipped.
with owners as (
  select lock, id from started where lock = any ($2::text[]) for key share skip locked
), ready as (
  select lock, id from waiting
  where $1::bigint = 1 and lock = any ($2::text[]) and state in (0, 1)
  for share skip locked
)
select lock, id, 1 from owners
union all
select lock, id, 0 from ready
