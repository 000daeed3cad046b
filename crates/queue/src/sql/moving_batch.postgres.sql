select id from batches
where state in (1, 2, 5) and state = 1 and held = 0 and exists (select 1 from batch_entries where batch = batches.id)
order by id limit 1
for no key update skip locked
