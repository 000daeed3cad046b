-- Reports on batches.

-- name: reporting_batch (sqlite)
select id from batches where state in (2, 5) and open = 0 order by id limit 1

-- name: reporting_batch (postgres)
select id from batches where state in (2, 5) and open = 0 order by id limit 1
for no key update skip locked

-- name: insert_report
insert into batch_reports (batch, version, at, content) values ($1, $2, $3, $4)

-- name: last_report
select coalesce(max(version), 0), coalesce(max(at), 0) from batch_reports where batch = $1

-- name: batch_failures
select f.job, f.subject, 3, f.stage, f.code, f.message, null
from job_records j join failures f on f.job = j.id
where j.batch = $1 and j.batch is not null order by f.job limit $2

-- name: batch_cancelled
-- Rows of a batch that a person cancelled.
select j.id, j.subject, j.status, j.stage, null, j.ended_why, j.ended_by
from jobs j left join replacements r on r.job = j.id and r.at is not null
where j.batch = $1 and j.batch is not null and j.status = 5 and r.job is null
order by j.id limit $2

-- name: batch_changed
select j.id, j.subject, j.status, j.stage, f.code, j.ended_why, j.ended_by
from jobs j left join failures f on f.job = j.id
where j.batch = $1 and j.batch is not null and j.ended_at > $2 order by j.id limit $3

-- name: batch_changed_count
select count(*) from jobs where batch = $1 and batch is not null and ended_at > $2

-- name: newest_report
select content from batch_reports where batch = $1 order by version desc limit 1

-- name: announce
update batch_reports set announced = 1 where batch = $1 and version <= $2 and announced = 0
