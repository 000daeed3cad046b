-- What was unchanged made no version: the object has the one before.
select o.identifier, coalesce(i.version, 0) - i.unchanged, i.unchanged
from ingests i
join objects o on o.id = i.object
join queue_jobs j on j.id = i.job
where i.batch = $1 and j.status = 'succeeded'
order by i.job
limit $2
