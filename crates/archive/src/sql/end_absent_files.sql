update files set until = $3 - 1
where object = $2 and until is null
  and not exists (select 1 from ingest_files i where i.job = $1 and i.path = files.path)
