select count(*), coalesce(cast(sum(jobs) as bigint), 0)
from (select count(*) as jobs from failures group by pipeline, code) as kinds
