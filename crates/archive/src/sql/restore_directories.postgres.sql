insert into empty_directories (object, version, path, modified)
select $1, $2, r.* from unnest($3::text[], $4::bigint[]) as r
