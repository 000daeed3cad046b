-- Which object a deposit is about, and what the deposit changes of it.

-- name: take_over_object
update objects set job = $2 where id = $1

-- name: local_ids_of
select local_id from local_ids where object = $1 order by local_id

-- name: object_by_identifier
select id, identifier, collection, lock, state, head, metadata, place from objects where identifier = $1

-- name: object_by_local_id
select o.id, o.identifier, o.collection, o.lock, o.state, o.head, o.metadata, o.place
from local_ids l join objects o on o.id = l.object
where l.collection = $1 and l.local_id = $2

-- name: insert_object
insert into objects (id, identifier, collection, lock, state, job, head, title, files, bytes,
                     created_at, updated_at)
values ($1, $2, $3, $4, 0, $5, 0, $6, 0, 0, $7, $7)
on conflict (identifier) do nothing

-- name: carry_directories
-- Those of the version before, but for those that the job brings files into.
insert into ingest_directories (job, path, modified)
select cast($1 as bigint), d.path, d.modified from empty_directories d
where d.object = $2 and d.version = $3
  and not exists (select 1 from ingest_files i
                  where i.job = $1 and substr(i.path, 1, length(d.path) + 1) = d.path || '/')
on conflict (job, path) do nothing

-- name: forget_filled_directories
-- Empty in the package, and not in the object: it keeps files there.
delete from ingest_directories
where job = $1
  and exists (select 1 from files f
              where f.object = $2 and f.until is null
                and substr(f.path, 1, length(ingest_directories.path) + 1)
                  = ingest_directories.path || '/')

-- name: count_new_directories
select count(*) from ingest_directories i
where i.job = $1 and not exists (select 1 from empty_directories d
                                 where d.object = $2 and d.version = $3 and d.path = i.path)

-- name: classify_files
-- 1 new, 2 changed, 3 unchanged, as in src/codes.rs.
update ingest_files set change = coalesce(
  (select case when f.sha512 = ingest_files.sha512 then 3 else 2 end
   from files f where f.object = $2 and f.path = ingest_files.path and f.until is null),
  1)
where job = $1

-- name: count_changes
select count(*), coalesce(cast(sum(size) as bigint), 0), count(case when change = 1 then 1 end),
       count(case when change = 2 then 1 end), count(case when change = 3 then 1 end)
from ingest_files where job = $1

-- name: count_absent
select count(*) from files f
where f.object = $2 and f.until is null
  and not exists (select 1 from ingest_files i where i.job = $1 and i.path = f.path)
