select id, name, host, pid from workers where ended_at is null and lease_until < $1 order by lease_until limit 1
