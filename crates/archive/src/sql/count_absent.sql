select count(*) from files f
where f.object = $2 and f.until is null
  and not exists (select 1 from ingest_files i where i.job = $1 and i.path = f.path)
