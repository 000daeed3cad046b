select id, lock from started
where stage = $1 and started_at is null and worker is not null and worker <> $2 and claimed_at < $3 and probe is null
order by claimed_at, id limit $4
for update skip locked
