update files set until = $3 - 1
where object = $2 and until is null
  and path in (select path from ingest_files where job = $1 and change = 2)
