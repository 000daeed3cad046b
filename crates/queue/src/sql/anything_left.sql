-- Anything in this stage or an earlier one that is not held: it may still come.
select s.id
from stages me join stages s on s.pipeline = me.pipeline and s.position <= me.position
where me.id = $1
  and (exists (select 1 from waiting w where w.stage = s.id and w.state <> 3)
    or exists (select 1 from started r where r.stage = s.id and r.worker is not null))
limit 1
