-- Moving times after the database clock was set back.

-- name: rebase_waiting
update waiting set due = due - (since - $1), since = $1
where state = 2 and begun = 1 and since > $2
returning stage

-- name: rebase_workers
update workers set lease_until = $1 + (lease_until - seen_at), seen_at = $1
where ended_at is null and seen_at > $2
returning id

-- name: rebase_targets
update targets set next_probe = $1 + probe_wait
where opened_at is not null and next_probe > $2 + probe_wait
returning 1
