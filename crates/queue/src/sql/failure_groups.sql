select pipeline, code, count(*), cast(sum(needs_review) as bigint), min(failed_at), max(failed_at), max(job)
from failures group by pipeline, code order by 3 desc, 2 limit $1
