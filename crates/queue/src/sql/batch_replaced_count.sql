select count(*), coalesce(cast(sum(case when r.content = 1 then 1 else 0 end) as bigint), 0)
from replacements r join job_records j on j.id = r.job
where +j.batch = $1 and r.at is not null
