insert into workers (id, name, boot, host, pid, stages, capacity, workspaces, started_at, seen_at, lease_until)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10)
