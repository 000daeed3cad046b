insert into ingest_directories (job, path, modified)
select $1, r.* from unnest($2::text[], $3::bigint[]) as r
