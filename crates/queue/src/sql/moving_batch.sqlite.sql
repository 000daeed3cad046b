-- From entry to entry of another batch: there may be many batches under way, and few of them have
-- entries left.
with recursive with_entries (batch) as (
  select min(batch) from batch_entries
  union all
  select (select min(e.batch) from batch_entries e where e.batch > w.batch) from with_entries w where w.batch is not null
)
select b.id from with_entries w cross join batches b on b.id = w.batch
where b.state = 1 and b.held = 0
limit 1
