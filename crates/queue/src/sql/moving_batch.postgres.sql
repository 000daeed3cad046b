-- From entry to entry of another batch: there may be many batches under way, and few of them have
-- entries left.
with recursive with_entries (batch) as (
  select min(batch) from batch_entries
  union all
  select (select min(e.batch) from batch_entries e where e.batch > w.batch) from with_entries w where w.batch is not null
)
select b.id
from with_entries w, lateral (
  select id from batches where id = w.batch and state = 1 and held = 0 for no key update skip locked
) as b
limit 1
