-- Objects, versions, files and copies, as they are shown.

-- name: list_all_files
select path, size, sha512, digests, puid, format, since, until, modified
from files
where object = $1 and (path > $2 or (path = $2 and since > $3))
order by path, since limit $4

-- name: add_local_id
insert into local_ids (collection, local_id, object) values ($1, $2, $3)
on conflict (collection, local_id) do nothing

-- name: list_objects
select o.id, o.identifier, o.collection, o.state, o.head, o.title, o.files, o.bytes,
       o.created_at, o.updated_at, o.metadata, o.lock
from objects o
where o.id > $1
  and (cast($2 as text) is null or o.identifier = $2)
  and (cast($3 as text) is null
       or o.id in (select l.object from local_ids l where l.local_id = $3))
  and (cast($4 as text) is null or o.collection = $4)
  and (cast($5 as bigint) is null or o.state = $5)
  and (cast($6 as text) is null
       or o.id in (select f.object from files f where f.puid = $6 and f.until is null))
  and (cast($7 as bigint) is null or o.updated_at >= $7)
  and (cast($8 as bigint) is null or o.updated_at < $8)
  and (cast($10 as text) is null
       or lower(o.title) like $10 escape '\'
       or lower(o.identifier) like $10 escape '\'
       or exists (select 1 from local_ids l
                  where l.object = o.id and lower(l.local_id) like $10 escape '\'))
order by o.id limit $9

-- name: object_by_id
select id, identifier, collection, state, head, title, files, bytes, created_at, updated_at, metadata, lock
from objects where id = $1

-- name: object_of_identifier
select id from objects where identifier = $1

-- name: objects_of_local_id
-- By the key of local_ids, which begins with the collection; a handful of collections is asked for
-- quicker than all local identifiers are read.
select l.object from collections c join local_ids l on l.collection = c.name and l.local_id = $1
order by l.object limit 2

-- name: objects_of_any_local_id
-- Also in collections that a rebuilt registry has and that were not made here.
select object from local_ids where local_id = $1 order by object limit 2

-- name: list_versions
select number, created_at, submitter, message, job, batch, files, bytes, files_new, files_changed,
       files_absent
from versions where object = $1 order by number

-- name: list_directories
select path from empty_directories where object = $1 and version = $2 order by path limit $3

-- name: list_files
select path, size, sha512, digests, puid, format, since, until, modified
from files
where object = $1 and since <= $2 and (until is null or until >= $2) and path > $3
order by path limit $4

-- name: file_of_version
select path, size, sha512, digests, puid, format, since, until, modified
from files
where object = $1 and since <= $2 and (until is null or until >= $2) and path = $3

-- name: list_copies
select store, version, key, digest, files, bytes, stored_at, verified_at, fixity_due, state,
       checked_at, current_read_at
from copies where object = $1 order by store

-- name: list_events
select id, kind, at, agent, outcome, detail, note, version, path, job, people
from events
where object = $1 and (at > $2 or (at = $2 and id > $3))
order by at, id limit $4

-- name: registry_totals
select count(*), coalesce(cast(sum(files) as bigint), 0), coalesce(cast(sum(bytes) as bigint), 0)
from objects where state = 1
