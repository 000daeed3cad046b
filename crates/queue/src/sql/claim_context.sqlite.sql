select w.lease_until, case when w.ended_at is null then 0 else 1 end, w.capacity, w.workspaces,
  case when exists (
    select 1 from pauses
    where kind = 'all' or (kind = 'pipeline' and id = $3) or (kind = 'stage' and id = $2)) then 1 else 0 end,
  case when exists (select 1 from holds) then 1 else 0 end,
  case when exists (select 1 from targets) then 1 else 0 end,
  case when exists (select 1 from waiting where stage = $2 and state = 2 and due <= $4) then 1 else 0 end,
  case when exists (select 1 from failures) then 1 else 0 end,
  case when exists (select 1 from resources) then 1 else 0 end,
  (select min(due) from waiting where stage = $2 and state = 2)
from workers w where w.id = $1
