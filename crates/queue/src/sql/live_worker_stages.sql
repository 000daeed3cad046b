select stages, workspaces from workers where ended_at is null and lease_until >= $1
