select o.identifier, coalesce(i.version, 0), i.unchanged
from ingests i
join objects o on o.id = i.object
where i.batch = $1 and i.recorded_at is not null
order by i.job
limit $2
