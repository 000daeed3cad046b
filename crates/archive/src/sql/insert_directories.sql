insert into empty_directories (object, version, path, modified)
select cast($2 as bigint), cast($3 as bigint), path, modified from ingest_directories where job = $1
