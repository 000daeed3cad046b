update started set started_at = $1
from unnest($3::text[], $4::bigint[], $5::bigint[]) as r (lock, id, token)
where started.lock = r.lock and started.id = r.id and started.token = r.token and started.worker = $2
returning started.id
