-- Whether a worker has anything left to do.

-- name: anything_left_in_stage
-- What is held waits for a person.
select 1 from queue_waiting where stage = $1 and state <> 'held'
union all
select 1 from queue_leases where stage = $1 and worker is not null
limit 1

-- name: anything_unmoved
-- Accepted deposits whose entries have not all become jobs.
select b.id from queue_batches b where b.held = 0
  and exists (select 1 from queue_batch_entries e where e.batch = b.id) and b.state <> 'pending'
limit 1
