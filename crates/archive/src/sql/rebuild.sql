-- The registry, dumped to and rebuilt from the stores.

-- name: head_of_object
select head from objects where identifier = $1

-- name: object_id_of
select id from objects where identifier = $1

-- name: dump_objects
select 'object ' || o.identifier || ' ' || o.collection || ' ' || o.lock || ' ' || cast(o.state as text)
  || ' ' || cast(o.head as text) || ' ' || coalesce(o.title, '') || ' ' || coalesce(o.metadata, '')
  || ' ' || cast(o.files as text) || ' ' || cast(o.bytes as text) || ' ' || cast(o.created_at as text)
  || ' ' || cast(o.updated_at as text) || ' ' || coalesce(o.place, '')
from objects o where o.state = 1 order by o.identifier

-- name: dump_versions
select 'version ' || o.identifier || ' ' || cast(v.number as text) || ' ' || cast(v.job as text)
  || ' ' || v.submitter || ' ' || coalesce(v.message, '') || ' ' || coalesce(v.metadata, '')
  || ' ' || cast(v.files as text) || ' ' || cast(v.bytes as text) || ' ' || cast(v.files_new as text)
  || ' ' || cast(v.files_changed as text) || ' ' || cast(v.files_absent as text)
  || ' ' || cast(v.created_at as text)
from versions v join objects o on o.id = v.object order by o.identifier, v.number

-- name: dump_files
select 'file ' || o.identifier || ' ' || f.path || ' ' || cast(f.since as text) || ' '
  || coalesce(cast(f.until as text), '-') || ' ' || cast(f.size as text) || ' ' || f.sha512 || ' '
  || coalesce(f.digests, '') || ' ' || coalesce(f.puid, '') || ' ' || coalesce(f.format, '')
  || ' ' || coalesce(cast(f.modified as text), '-')
from files f join objects o on o.id = f.object order by o.identifier, f.path, f.since

-- name: dump_directories
select 'directory ' || o.identifier || ' ' || cast(d.version as text) || ' ' || d.path || ' '
  || coalesce(cast(d.modified as text), '-')
from empty_directories d join objects o on o.id = d.object order by o.identifier, d.version, d.path

-- name: dump_copies
select 'copy ' || o.identifier || ' ' || c.store || ' ' || cast(c.version as text) || ' ' || c.key
  || ' ' || c.digest || ' ' || cast(c.files as text) || ' ' || cast(c.bytes as text) || ' '
  || cast(c.stored_at as text)
from copies c join objects o on o.id = c.object order by o.identifier, c.store

-- name: dump_events
-- Events of no version or no job are not part of a version's record, so that no store can know them.
select 'event ' || o.identifier || ' ' || e.id || ' ' || cast(e.version as text) || ' ' || e.kind
  || ' ' || cast(e.at as text) || ' ' || e.agent || ' ' || e.outcome || ' ' || coalesce(e.detail, '')
  || ' ' || coalesce(e.note, '') || ' ' || coalesce(e.path, '') || ' ' || coalesce(e.people, '')
from events e join objects o on o.id = e.object
where e.version is not null and e.job is not null
order by o.identifier, e.at, e.id

-- name: forget_directories
delete from empty_directories where object = $1

-- name: forget_versions
delete from versions where object = $1

-- name: forget_files
delete from files where object = $1

-- name: forget_copies
delete from copies where object = $1

-- name: forget_local_ids
delete from local_ids where object = $1

-- name: forget_object
delete from objects where id = $1

-- name: restore_object
insert into objects (id, identifier, collection, lock, state, job, head, title, metadata, files,
                     bytes, created_at, updated_at, place, watched)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, $11, $12, $13)

-- name: count_object
update objects set
  files = (select count(*) from files f where f.object = $1 and f.until is null),
  bytes = (select coalesce(sum(size), 0) from files f where f.object = $1 and f.until is null)
where id = $1

-- name: restore_files (sqlite)
insert into files (object, path, since, until, size, sha512, digests, puid, format, modified)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)

-- name: restore_files (postgres)
insert into files (object, path, since, until, size, sha512, digests, puid, format, modified)
select $1, r.* from unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[],
                           $7::text[], $8::text[], $9::text[], $10::bigint[]) as r

-- name: count_old_version
update versions set
  files = (select count(*) from files f where f.object = $1 and f.since <= $2
           and (f.until is null or f.until >= $2)),
  bytes = (select coalesce(sum(size), 0) from files f where f.object = $1 and f.since <= $2
           and (f.until is null or f.until >= $2))
where object = $1 and number = $2

-- name: restore_directories (sqlite)
insert into empty_directories (object, version, path, modified) values ($1, $2, $3, $4)

-- name: restore_directories (postgres)
insert into empty_directories (object, version, path, modified)
select $1, $2, r.* from unnest($3::text[], $4::bigint[]) as r
