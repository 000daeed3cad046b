-- What was called `started`: who owns which lock, and under which lease.
alter table started rename to leases;

-- The views that other crates read; docs/queue.md describes them. They say in words what the tables
-- keep as codes. Each is over few tables, so that a query over a view uses the tables' indexes.

-- Every job. Status: open, failed, succeeded, cancelled.
create view queue_jobs as
select j.id, j.pipeline, j.subject, j.lock, j.payload, j.batch, j.collection, j.added_at, j.added_by,
  case coalesce(e.status, 0) when 3 then 'failed' when 4 then 'succeeded' when 5 then 'cancelled' else 'open' end as status,
  e.ended_at, e.ended_by, e.ended_why
from job_records j left join endings e on e.job = j.id;

-- Jobs that wait. State: ready, parked, delayed, held, blocked, starved.
create view queue_waiting as
select id as job, stage, due,
  case state when 0 then 'ready' when 1 then 'parked' when 2 then 'delayed' when 3 then 'held' when 4 then 'blocked'
    else 'starved' end as state
from waiting;

-- Jobs that own their lock. The worker is null between two stages, while the job waits.
create view queue_leases as
select id as job, lock, stage, worker from leases;

-- Jobs that failed, and were not sent again or superseded since.
create view queue_failures as
select job, pipeline, subject, stage, failed_at, code, message, target, needs_review, recoverable, discarded
from failures;

-- The stages of all pipelines.
create view queue_stages as
select s.id, s.name, p.id as pipeline, p.name as pipeline_name
from stages s join pipelines p on p.id = s.pipeline;

-- What happened to jobs, in the order of the ids.
create view queue_history as
select job, id, at, who, event, why from history;

-- Batches. State: pending, processing, reporting, completed, failed, update-reporting, deleted.
create view queue_batches as
select id, submitter, held,
  case state when 0 then 'pending' when 1 then 'processing' when 2 then 'reporting' when 3 then 'completed'
    when 4 then 'failed' when 5 then 'update-reporting' else 'deleted' end as state
from batches;

-- Entries of batches that have not become jobs.
create view queue_batch_entries as
select batch, number, subject from batch_entries;

-- The versions of batch reports; `announced` is 1 once rules::report::announce was told so.
create view queue_reports as
select batch, version, announced from batch_reports;

-- Jobs that a later job superseded, with that job and its batch. Content: never read, the same,
-- different, unrelated (another thing of the same name), or null if not compared.
create view queue_replacements as
select job, by_job, (select j.batch from job_records j where j.id = replacements.by_job) as by_batch,
  case content when 0 then 'never read' when 1 then 'the same' when 2 then 'different' when 3 then 'unrelated' end as content
from replacements where at is not null;
