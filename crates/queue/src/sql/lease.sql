-- Workers, their leases, and claimed jobs that move to another worker.

-- name: insert_worker
insert into workers (id, name, boot, host, pid, stages, capacity, workspaces, started_at, seen_at, lease_until)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10)

-- name: live_workers
select name, host, pid from workers where ended_at is null and lease_until >= $1 order by id limit 10

-- name: renew_lease
update workers set seen_at = $2, lease_until = $3 where id = $1 and ended_at is null

-- name: worker_holdings
select id, token, case when cancel_by is null then 0 else 1 end from leases where worker = $1

-- name: expired_worker (sqlite)
select id, name, host, pid from workers where ended_at is null and lease_until < $1 order by lease_until limit 1

-- name: expired_worker (postgres)
select id, name, host, pid from workers where ended_at is null and lease_until < $1 order by lease_until limit 1
for update skip locked

-- name: server_uptime (postgres)
select cast(extract(epoch from clock_timestamp() - pg_postmaster_start_time()) * 1000000 as bigint)

-- name: end_worker
update workers set ended_at = $2, ended_why = $3 where id = $1 and ended_at is null

-- name: worker_leases
select s.id, s.lock, s.token, j.batch from leases s join job_records j on j.id = s.id where s.worker = $1 order by s.lock

-- name: idle_claims (sqlite)
select id, lock from leases
where stage = $1 and started_at is null and worker is not null and worker <> $2 and claimed_at < $3 and probe is null
order by claimed_at, id limit $4

-- name: idle_claims (postgres)
select id, lock from leases
where stage = $1 and started_at is null and worker is not null and worker <> $2 and claimed_at < $3 and probe is null
order by claimed_at, id limit $4
for update skip locked

-- name: take_over
update leases set worker = $3, token = $4, claimed_at = $5, started_at = $5 where lock = $1 and id = $2

-- name: claimed_details (sqlite)
select j.id, j.subject, j.payload, j.added_at, coalesce(t.attempts, 0)
from job_records j left join tries t on t.job = j.id and t.stage = $1
where j.id = $2

-- name: claimed_details (postgres)
select id, subject, payload, added_at, coalesce((select attempts from tries where job = job_records.id and stage = $1), 0)
from job_records where id = any ($2::bigint[])

-- name: job_record
select batch, collection, targets, workspace, priority from job_records where id = $1

-- name: job_reservations
select resource, amount from reservations where job = $1

-- name: move_reservations
update reservations set worker = $2 where job = $1
