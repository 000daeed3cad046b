select count(*) from ingest_directories i
where i.job = $1 and not exists (select 1 from empty_directories d
                                 where d.object = $2 and d.version = $3 and d.path = i.path)
