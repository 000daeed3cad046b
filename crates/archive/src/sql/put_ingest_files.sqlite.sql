insert into ingest_files (job, number, path, size, locator, source, sha512, digests, puid, format,
                          modified)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (job, number) do update set
  path = excluded.path, size = excluded.size, locator = excluded.locator, source = excluded.source,
  sha512 = excluded.sha512, digests = excluded.digests, puid = excluded.puid,
  format = excluded.format, modified = excluded.modified
