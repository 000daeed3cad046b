update targets set next_probe = $1 + probe_wait
where opened_at is not null and next_probe > $2 + probe_wait
returning 1
