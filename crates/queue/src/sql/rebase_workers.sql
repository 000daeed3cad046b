update workers set lease_until = $1 + (lease_until - seen_at), seen_at = $1
where ended_at is null and seen_at > $2
returning id
