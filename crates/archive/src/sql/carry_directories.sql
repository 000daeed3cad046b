-- Those of the version before, but for those that the job brings files into.
insert into ingest_directories (job, path, modified)
select cast($1 as bigint), d.path, d.modified from empty_directories d
where d.object = $2 and d.version = $3
  and not exists (select 1 from ingest_files i
                  where i.job = $1 and substr(i.path, 1, length(d.path) + 1) = d.path || '/')
on conflict (job, path) do nothing
