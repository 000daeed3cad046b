-- Anything in this stage or an earlier one that is not held, or that a batch still has to bring: it
-- may still come.
select s.id
from stages me join stages s on s.pipeline = me.pipeline and s.position <= me.position
where me.id = $1
  and (exists (select 1 from waiting w where w.stage = s.id and w.state <> 3)
    or exists (select 1 from started r where r.stage = s.id and r.worker is not null)
    or exists (select 1 from batches b
      where b.state in (1, 2, 5) and b.state = 1 and b.held = 0 and b.pipeline = me.pipeline
        and exists (select 1 from batch_entries e where e.batch = b.id)))
limit 1
