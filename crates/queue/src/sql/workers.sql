-- Workers, as they are shown.

-- name: live_worker_stages
select stages, workspaces from workers where ended_at is null and lease_until >= $1

-- name: list_workers
select id, name, host, pid, stages, started_at, seen_at, lease_until, ended_at, ended_why
from workers where ended_at is null or ended_at > $1 order by id desc limit 1000

-- name: worker_jobs
select s.id, j.subject, coalesce(s.started_at, s.claimed_at), case when s.started_at is null then 0 else 1 end, s.progress
from leases s join job_records j on j.id = s.id where s.worker = $1 order by s.claimed_at limit 100
