select w.workspaces
from workers w
where w.id = $1 and w.ended_at is null and w.lease_until >= $2 and not exists (select 1 from pauses)
