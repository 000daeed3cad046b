select puid, count(*), coalesce(cast(sum(size) as bigint), 0), min(format)
from ingest_files where job = $1 group by puid order by puid
