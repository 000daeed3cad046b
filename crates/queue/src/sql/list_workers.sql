select id, name, host, pid, stages, started_at, seen_at, lease_until, ended_at, ended_why
from workers where ended_at is null or ended_at > $1 order by id desc limit 1000
