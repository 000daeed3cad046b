-- Accepted deposits whose entries have not all become jobs.
select b.id from batches b where b.held = 0
  and exists (select 1 from batch_entries e where e.batch = b.id) and b.state <> 0
limit 1
