-- The installation.

-- name: find_installation
select id from installation order by id limit 1

-- name: name_installation
insert into installation (id)
select cast($1 as text) where not exists (select 1 from installation)

-- name: any_version
-- Whether a version of any object is recorded.
select object from versions limit 1
