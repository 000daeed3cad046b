select count(*), coalesce(cast(sum(size) as bigint), 0), count(case when change = 1 then 1 end),
       count(case when change = 2 then 1 end), count(case when change = 3 then 1 end)
from ingest_files where job = $1
