-- Reports on batches, page by page.

-- name: job_in_brief
select j.subject, j.pipeline, j.batch, i.version, i.unchanged, i.summary
from queue_jobs j left join ingests i on i.job = j.id
where j.id = $1

-- name: report_objects
select j.id, j.subject, i.version, i.unchanged, i.summary
from queue_jobs j left join ingests i on i.job = j.id
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status = 'succeeded'
order by j.id limit $3

-- name: report_cancelled
-- Cancelled by a person, or because a later job superseded it.
select j.id, j.subject, j.ended_by, j.ended_why, r.by_job, r.by_batch, r.content
from queue_jobs j
left join queue_replacements r on r.job = j.id
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status = 'cancelled'
order by j.id limit $3

-- name: report_cancelled_rows
select number, subject, who, reason from cancelled_rows where batch = $1 and number > $2 order by number limit $3

-- name: report_unfinished
-- Jobs that wait or run.
select j.id, j.subject, w.state, s.worker, coalesce(t.name, '')
from queue_jobs j
left join queue_waiting w on w.job = j.id
left join queue_leases s on s.lock = j.lock and s.job = j.id
left join queue_stages t on t.id = coalesce(w.stage, s.stage)
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status = 'open'
order by j.id limit $3

-- name: report_entries
-- Rows that were accepted and have not become jobs.
select number, subject from queue_batch_entries where batch = $1 and number > $2 order by number limit $3

-- name: report_failures
select f.job, f.subject, s.name, f.code, f.message, f.recoverable, i.failed_file
from queue_jobs j join queue_failures f on f.job = j.id join queue_stages s on s.id = f.stage
left join ingests i on i.job = f.job
where j.batch = $1 and j.batch is not null and j.id > $2
order by f.job limit $3

-- name: report_failure
select s.pipeline_name, s.name, f.subject, j.collection, f.code, f.message, f.failed_at
from queue_failures f join queue_jobs j on j.id = f.job join queue_stages s on s.id = f.stage
where f.job = $1

-- name: report_totals
select coalesce(cast(sum(i.unchanged) as bigint), 0),
       coalesce(cast(sum(f.bytes) as bigint), 0), max(j.ended_at)
from queue_jobs j
left join ingests i on i.job = j.id
left join versions f on f.object = i.object and f.number = i.version and f.job = i.job
where j.batch = $1 and j.batch is not null

-- name: report_summaries
select job, summary from ingests
where batch = $1 and job > $2 and recorded_at is not null and summary is not null
order by job limit $3
