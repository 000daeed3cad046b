delete from ingest_files where job = $1
