-- The worker's row is locked: one that is being ended must not get jobs that nobody would take back.
-- Every table is looked at once: a job that comes while all is quiet waits for each look.
select w.lease_until, case when w.ended_at is null then 0 else 1 end, w.capacity, w.workspaces,
  case when exists (
    select 1 from pauses
    where id = case kind when 'pipeline' then $3 when 'stage' then $2 else id end) then 1 else 0 end,
  case when exists (select 1 from holds) then 1 else 0 end,
  case when exists (select 1 from targets) then 1 else 0 end,
  case when delayed.due <= $4 then 1 else 0 end,
  case when exists (select 1 from failures) then 1 else 0 end,
  case when exists (select 1 from resources) then 1 else 0 end,
  delayed.due
from workers w, (select min(due) as due from waiting where stage = $2 and state = 2) as delayed
where w.id = $1
for share of w
