insert into ingest_files (job, number, path, size, locator, source, sha512, digests, puid, format,
                          modified)
select $1, r.* from unnest($2::bigint[], $3::text[], $4::bigint[], $5::bytea[], $6::text[],
                           $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[]) as r
on conflict (job, number) do update set
  path = excluded.path, size = excluded.size, locator = excluded.locator, source = excluded.source,
  sha512 = excluded.sha512, digests = excluded.digests, puid = excluded.puid,
  format = excluded.format, modified = excluded.modified
