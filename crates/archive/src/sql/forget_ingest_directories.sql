delete from ingest_directories where job = $1
