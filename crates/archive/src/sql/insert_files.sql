insert into files (object, path, since, size, sha512, digests, puid, format, modified)
select cast($2 as bigint), path, cast($3 as bigint), size, sha512, digests, puid, format, modified
from ingest_files where job = $1 and change in (1, 2)
order by path
