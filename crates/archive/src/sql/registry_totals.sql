select count(*), coalesce(cast(sum(files) as bigint), 0), coalesce(cast(sum(bytes) as bigint), 0)
from objects where state = 1
