-- The job that a pending batch waits for: it fills the batch and accepts it. Null for a batch that a
-- command fills, and once the batch was accepted, cancelled or deleted. It stays after the job failed:
-- a requeue of that job opens the batch again.
alter table batches add column prepared_by integer;
create index batches_prepared on batches (state, prepared_by) where prepared_by is not null;
-- Batches that are pending now were deposited; the lock of the job that prepares one has its number.
update batches set prepared_by = (
  select max(j.id) from job_records j join pipelines p on p.id = j.pipeline
  where p.name = 'batch' and j.lock = 'batch/' || batches.id
)
where state = 0;
-- Those whose job has ended waited for nothing: they fail, and are reported.
delete from batch_entries where batch in (
  select b.id from batches b join endings e on e.job = b.prepared_by where b.state = 0
);
update batches set state = 2, error = (
  select 'job ' || e.job || ', which prepares the batch, has ended: ' || coalesce(e.ended_why, 'without a reason')
    || '; `accession jobs show ' || e.job || '` says more. Requeue that job if it failed, or deposit again'
  from endings e where e.job = batches.prepared_by
)
where state = 0 and prepared_by in (select job from endings);
