insert into ingests (job, batch, collection, space_bytes, package, object, version, unchanged,
                     metadata, stores, summary, began_at, validated_files, validated_bytes, said)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict (job) do update set
  space_bytes = excluded.space_bytes, package = excluded.package, object = excluded.object,
  version = excluded.version, unchanged = excluded.unchanged, metadata = excluded.metadata,
  stores = excluded.stores, summary = excluded.summary, validated_files = excluded.validated_files,
  validated_bytes = excluded.validated_bytes, said = excluded.said
