-- Of all but the completed ones, of which there may be very many.
select state, count(*), cast(sum(held) as bigint), cast(sum(open) as bigint), min(created_at), max(updated_at)
from batches where state <> 3 group by state
