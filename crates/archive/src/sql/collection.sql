-- Collections and their profiles.

-- name: find_collection
select profile from collections where name = $1

-- name: list_collections
select name, profile, created_at, created_by, updated_at from collections order by name

-- name: put_collection
insert into collections (name, profile, created_at, created_by, updated_at)
values ($1, $2, $3, $4, $3)
on conflict (name) do update set profile = excluded.profile, updated_at = excluded.updated_at
where collections.profile <> excluded.profile
