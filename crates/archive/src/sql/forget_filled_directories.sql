-- Empty in the package, and not in the object: it keeps files there.
delete from ingest_directories
where job = $1
  and exists (select 1 from files f
              where f.object = $2 and f.until is null
                and substr(f.path, 1, length(ingest_directories.path) + 1)
                  = ingest_directories.path || '/')
