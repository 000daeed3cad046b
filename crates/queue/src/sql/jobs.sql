-- Views of jobs. The lists return the same columns, each from the smallest table that has its jobs.

-- name: list_waiting
select j.id, j.pipeline, coalesce(w.stage, s.stage, f.stage, j.stage), j.subject, j.status, w.state, j.lock, j.priority, w.due,
  j.batch, j.collection, j.added_at, j.added_by, coalesce(w.since, s.started_at, s.claimed_at), s.token, s.worker, k.name,
  s.progress, coalesce(s.error_seen, f.message), f.code, f.target, coalesce(f.note, w.why), f.needs_review, f.recoverable,
  s.cancel_by, j.ended_at, j.ended_by, j.ended_why, length(j.payload)
from waiting w join jobs j on j.id = w.id
left join leases s on s.lock = j.lock and s.id = j.id
left join failures f on f.job = j.id
left join workers k on k.id = s.worker
where w.id < $2 and cast($8 as bigint) is null and (case when w.state = 3 then 1 else 0 end) = $7
  and (cast($1 as bigint) is null or j.pipeline = $1)
  and (cast($4 as bigint) is null or j.batch = $4)
  and (cast($5 as text) is null or j.collection = $5)
  and (cast($6 as text) is null or j.subject = $6)
  and (cast($9 as bigint) is null or coalesce(w.stage, s.stage, f.stage, j.stage) = $9)
order by w.id desc limit $3

-- name: list_started
select j.id, j.pipeline, coalesce(w.stage, s.stage, f.stage, j.stage), j.subject, j.status, w.state, j.lock, j.priority, w.due,
  j.batch, j.collection, j.added_at, j.added_by, coalesce(w.since, s.started_at, s.claimed_at), s.token, s.worker, k.name,
  s.progress, coalesce(s.error_seen, f.message), f.code, f.target, coalesce(f.note, w.why), f.needs_review, f.recoverable,
  s.cancel_by, j.ended_at, j.ended_by, j.ended_why, length(j.payload)
from leases s join jobs j on j.id = s.id
left join waiting w on w.id = j.id
left join failures f on f.job = j.id
left join workers k on k.id = s.worker
where s.worker is not null and s.id < $2 and cast($8 as bigint) is null and coalesce(cast($7 as bigint), 0) = 0
  and (cast($1 as bigint) is null or j.pipeline = $1)
  and (cast($4 as bigint) is null or j.batch = $4)
  and (cast($5 as text) is null or j.collection = $5)
  and (cast($6 as text) is null or j.subject = $6)
  and (cast($9 as bigint) is null or coalesce(w.stage, s.stage, f.stage, j.stage) = $9)
order by s.id desc limit $3

-- name: list_failed
select j.id, j.pipeline, coalesce(w.stage, s.stage, f.stage, j.stage), j.subject, j.status, w.state, j.lock, j.priority, w.due,
  j.batch, j.collection, j.added_at, j.added_by, coalesce(w.since, s.started_at, s.claimed_at), s.token, s.worker, k.name,
  s.progress, coalesce(s.error_seen, f.message), f.code, f.target, coalesce(f.note, w.why), f.needs_review, f.recoverable,
  s.cancel_by, j.ended_at, j.ended_by, j.ended_why, length(j.payload)
from failures f join jobs j on j.id = f.job
left join waiting w on w.id = j.id
left join leases s on s.lock = j.lock and s.id = j.id
left join workers k on k.id = s.worker
where f.job < $2 and cast($8 as bigint) is null and coalesce(cast($7 as bigint), 0) = 0
  and (cast($1 as bigint) is null or j.pipeline = $1)
  and (cast($4 as bigint) is null or j.batch = $4)
  and (cast($5 as text) is null or j.collection = $5)
  and (cast($6 as text) is null or j.subject = $6)
  and (cast($9 as bigint) is null or coalesce(w.stage, s.stage, f.stage, j.stage) = $9)
order by f.job desc limit $3

-- name: list_jobs
-- $7 belongs to the lists of waiting jobs.
select j.id, j.pipeline, coalesce(w.stage, s.stage, f.stage, j.stage), j.subject, j.status, w.state, j.lock, j.priority, w.due,
  j.batch, j.collection, j.added_at, j.added_by, coalesce(w.since, s.started_at, s.claimed_at), s.token, s.worker, k.name,
  s.progress, coalesce(s.error_seen, f.message), f.code, f.target, coalesce(f.note, w.why), f.needs_review, f.recoverable,
  s.cancel_by, j.ended_at, j.ended_by, j.ended_why, length(j.payload)
from jobs j
left join waiting w on w.id = j.id
left join leases s on s.lock = j.lock and s.id = j.id
left join failures f on f.job = j.id
left join workers k on k.id = s.worker
where j.id < $2 and coalesce(cast($7 as bigint), 0) = 0
  and (cast($1 as bigint) is null or j.pipeline = $1)
  and (cast($4 as bigint) is null or j.batch = $4)
  and (cast($5 as text) is null or j.collection = $5)
  and (cast($6 as text) is null or j.subject = $6)
  and (cast($8 as bigint) is null or j.status = $8)
  and (cast($9 as bigint) is null or coalesce(w.stage, s.stage, f.stage, j.stage) = $9)
order by j.id desc limit $3

-- name: show_job
select j.id, j.pipeline, coalesce(w.stage, s.stage, f.stage, j.stage), j.subject, j.status, w.state, j.lock, j.priority, w.due,
  j.batch, j.collection, j.added_at, j.added_by, coalesce(w.since, s.started_at, s.claimed_at), s.token, s.worker, k.name,
  s.progress, coalesce(s.error_seen, f.message), f.code, f.target, coalesce(f.note, w.why), f.needs_review, f.recoverable,
  s.cancel_by, j.ended_at, j.ended_by, j.ended_why, length(j.payload)
from jobs j
left join waiting w on w.id = j.id
left join leases s on s.lock = j.lock and s.id = j.id
left join failures f on f.job = j.id
left join workers k on k.id = s.worker
where j.id = $1

-- name: job_tries
select t.stage, t.attempts, t.attempts_ever, t.interruptions, t.interruptions_ever, t.requeues
from tries t join stages s on s.id = t.stage where t.job = $1 order by s.position
