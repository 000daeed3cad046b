-- Of all but the completed ones, of which there may be very many. A batch of a held collection counts as held.
select state, count(*), cast(sum(is_held) as bigint), cast(sum(open) as bigint), min(created_at), max(updated_at)
from (
  select state, open, created_at, updated_at,
    case when held = 1 or (state in (0, 1) and exists (
      select 1 from holds h where h.kind = 'collection' and h.name = batches.collection)) then 1 else 0 end as is_held
  from batches where state <> 3) as unfinished
group by state
