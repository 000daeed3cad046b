select b.id from batches b
where b.pipeline = $1 and b.state in (0, 1) and exists (select 1 from batch_entries e where e.batch = b.id)
limit 1
