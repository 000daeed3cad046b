insert into files (object, path, since, until, size, sha512, digests, puid, format, modified)
select $1, r.* from unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[],
                           $7::text[], $8::text[], $9::text[], $10::bigint[]) as r
