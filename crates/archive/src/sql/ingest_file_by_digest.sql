select number, path, size, locator, source, sha512, digests, puid, format, change, modified
from ingest_files where job = $1 and sha512 = $2 order by number limit 1
