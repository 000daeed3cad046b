-- Who would be handed out first in a stage; 0 if someone's time has come who has not been looked at.
select $2, (case
  when exists (select 1 from waiting where stage = $2 and state = 2 and due <= $1) then 0
  else (select priority from waiting where stage = $2 and state = 0 order by priority, due, id limit 1) end)
