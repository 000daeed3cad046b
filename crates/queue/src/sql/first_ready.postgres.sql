-- Who would be handed out first in a stage; 0 if someone's time has come who has not been looked at.
select r.stage, (case
  when exists (select 1 from waiting where stage = r.stage and state = 2 and due <= $1) then 0
  else (select priority from waiting where stage = r.stage and state = 0 order by priority, due, id limit 1) end)
from unnest($2::bigint[]) as r (stage)
