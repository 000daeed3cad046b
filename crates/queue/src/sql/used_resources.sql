select resource, cast(sum(amount) as bigint), cast(sum(case when worker = $1 then amount else 0 end) as bigint)
from reservations group by resource
