select count(*) from (
  select 1 as one from waiting w, waiting me
  where me.id = $1 and w.stage = me.stage and w.state = 0 and (w.priority, w.due, w.id) < (me.priority, me.due, me.id)
  limit $2
) as ahead
