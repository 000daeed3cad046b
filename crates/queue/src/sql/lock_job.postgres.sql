-- In the one order for locks: batch, started, waiting, failures.
with b as (
  select b.id from batches b join job_records j on j.batch = b.id where j.id = $1 for no key update of b
), s as (
  select s.id from started s join job_records j on j.lock = s.lock and j.id = s.id where j.id = $1 for update of s
), w as (
  select id from waiting where id = $1 for update
), f as (
  select job from failures where job = $1 for update
)
select 'batch' from b union all select 'started' from s union all select 'waiting' from w
union all select 'failed' from f
