select o.identifier, o.lock, i.recorded_at
from ingests i left join objects o on o.id = i.object
where i.job = $1
