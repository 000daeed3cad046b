insert into ingest_directories (job, path, modified) values ($1, $2, $3)
