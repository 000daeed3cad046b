select path, size, sha512, digests, puid, format, since, until, modified
from files
where object = $1 and (path > $2 or (path = $2 and since > $3))
order by path, since limit $4
