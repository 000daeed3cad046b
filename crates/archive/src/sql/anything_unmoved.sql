-- Accepted deposits whose entries have not all become jobs.
select b.id from queue_batches b where b.held = 0
  and exists (select 1 from queue_batch_entries e where e.batch = b.id) and b.state <> 'pending'
limit 1
