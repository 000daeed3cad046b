-- A job on its way: its row, its files and directories.

-- name: first_summaries
-- Of jobs that made the first version of an object.
select i.summary from ingests i
where i.batch = $1 and i.version = 1 and i.recorded_at is not null and i.summary is not null
order by i.job limit $2

-- name: stage_context
select i.job, i.batch, i.collection, i.space_bytes, i.package, i.object, i.version, i.unchanged, i.metadata,
  i.stores, i.summary, i.began_at, i.recorded_at, i.cleaned_at, i.discards, i.validated_files,
  i.validated_bytes, i.said, c.profile
from (select 1) as one
left join ingests i on i.job = $1
left join collections c on c.name = $2

-- name: save_ingest
insert into ingests (job, batch, collection, space_bytes, package, object, version, unchanged,
                     metadata, stores, summary, began_at, validated_files, validated_bytes, said)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict (job) do update set
  space_bytes = excluded.space_bytes, package = excluded.package, object = excluded.object,
  version = excluded.version, unchanged = excluded.unchanged, metadata = excluded.metadata,
  stores = excluded.stores, summary = excluded.summary, validated_files = excluded.validated_files,
  validated_bytes = excluded.validated_bytes, said = excluded.said

-- name: reopen_ingest
update ingests set cleaned_at = null, began_at = $2 where job = $1

-- name: count_ingest_files
select count(*), coalesce(cast(sum(size) as bigint), 0) from ingest_files where job = $1

-- name: count_ingest_paths
select count(*), coalesce(cast(sum(size) as bigint), 0), count(distinct path)
from ingest_files where job = $1

-- name: note_failed_file
-- A job may fail before anything else is known of it.
insert into ingests (job, batch, collection, began_at, failed_file)
values ($1, $2, $3, $4, $5)
on conflict (job) do update set failed_file = excluded.failed_file

-- name: put_ingest_files (sqlite)
insert into ingest_files (job, number, path, size, locator, source, sha512, digests, puid, format,
                          modified)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (job, number) do update set
  path = excluded.path, size = excluded.size, locator = excluded.locator, source = excluded.source,
  sha512 = excluded.sha512, digests = excluded.digests, puid = excluded.puid,
  format = excluded.format, modified = excluded.modified

-- name: put_ingest_files (postgres)
insert into ingest_files (job, number, path, size, locator, source, sha512, digests, puid, format,
                          modified)
select $1, r.* from unnest($2::bigint[], $3::text[], $4::bigint[], $5::bytea[], $6::text[],
                           $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[]) as r
on conflict (job, number) do update set
  path = excluded.path, size = excluded.size, locator = excluded.locator, source = excluded.source,
  sha512 = excluded.sha512, digests = excluded.digests, puid = excluded.puid,
  format = excluded.format, modified = excluded.modified

-- name: ingest_files_after
select number, path, size, locator, source, sha512, digests, puid, format, change, modified
from ingest_files where job = $1 and number > $2 order by number limit $3

-- name: ingest_file_by_digest
select number, path, size, locator, source, sha512, digests, puid, format, change, modified
from ingest_files where job = $1 and sha512 = $2 order by number limit 1

-- name: forget_ingest_files
delete from ingest_files where job = $1

-- name: forget_ingest_directories
delete from ingest_directories where job = $1

-- name: put_ingest_directories (sqlite)
insert into ingest_directories (job, path, modified) values ($1, $2, $3)

-- name: put_ingest_directories (postgres)
insert into ingest_directories (job, path, modified)
select $1, r.* from unnest($2::text[], $3::bigint[]) as r

-- name: ingest_directories_after
select path, modified from ingest_directories
where job = $1 and path > $2 order by path limit $3
