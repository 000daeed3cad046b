select path, modified from ingest_directories
where job = $1 and path > $2 order by path limit $3
