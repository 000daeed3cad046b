-- The first of each line, locked: after a wait the row is looked at again, and the next one taken if
-- it is gone. Who owns the lock promotes when he gives it up.
select w.id, w.stage, w.state
from unnest($1::text[]) as f (lock),
  lateral (
    select id, stage, state from waiting where lock = f.lock and state in (0, 1) order by state, id limit 1 for update
  ) as w
where (select 1 from started s where s.lock = f.lock) is null
