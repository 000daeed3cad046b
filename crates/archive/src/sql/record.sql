-- Recording a version in the registry.

-- name: insert_version
insert into versions (object, number, job, batch, submitter, message, metadata, files, bytes,
                      files_new, files_changed, files_absent, created_at)
values ($1, $2, $3, $4, $5, $6, $7, 0, 0, $8, $9, $10, $11)
on conflict (object, number) do nothing

-- name: end_changed_files
update files set until = $3 - 1
where object = $2 and until is null
  and path in (select path from ingest_files where job = $1 and change = 2)

-- name: end_absent_files
update files set until = $3 - 1
where object = $2 and until is null
  and not exists (select 1 from ingest_files i where i.job = $1 and i.path = files.path)

-- name: insert_files
insert into files (object, path, since, size, sha512, digests, puid, format, modified)
select cast($2 as bigint), path, cast($3 as bigint), size, sha512, digests, puid, format, modified
from ingest_files where job = $1 and change in (1, 2)
order by path

-- name: insert_directories
insert into empty_directories (object, version, path, modified)
select cast($2 as bigint), cast($3 as bigint), path, modified from ingest_directories where job = $1

-- name: activate_object
update objects set state = 1, title = $3, metadata = $4, updated_at = $5, place = $6, watched = null,
  created_at = case when head = 0 then $5 else created_at end,
  head = $2,
  files = (select count(*) from files f where f.object = $1 and f.until is null),
  bytes = (select coalesce(sum(size), 0) from files f where f.object = $1 and f.until is null)
where id = $1

-- name: count_version
update versions set files = (select files from objects where id = $1),
                    bytes = (select bytes from objects where id = $1)
where object = $1 and number = $2

-- name: ingest_recorded
update ingests set recorded_at = $2 where job = $1
