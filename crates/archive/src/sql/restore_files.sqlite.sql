insert into files (object, path, since, until, size, sha512, digests, puid, format, modified)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
