select path, size, sha512, digests, puid, format, since, until, modified
from files
where object = $1 and since <= $2 and (until is null or until >= $2) and path > $3
order by path limit $4
