select count(*), coalesce(cast(sum(size) as bigint), 0) from ingest_files where job = $1
