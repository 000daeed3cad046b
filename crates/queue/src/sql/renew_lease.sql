update workers set seen_at = $2, lease_until = $3 where id = $1 and ended_at is null
