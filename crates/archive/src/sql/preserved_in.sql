-- The stores that have a verified copy of what a job has deposited; one that was found bad is none.
-- A job that changed nothing made no version: the copies of the version before are what it is
-- preserved as.
select c.store
from ingests i
join objects o on o.id = i.object and o.state = 1
join copies c on c.object = i.object
where i.job = $1 and c.state = 0
  and (i.recorded_at is not null and c.version >= i.version
    or i.unchanged = 1 and c.version >= i.version - 1)
