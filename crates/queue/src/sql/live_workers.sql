select name, host, pid from workers where ended_at is null and lease_until >= $1 order by id limit 10
