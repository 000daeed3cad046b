-- A job may have failed before anything else was known of it.
insert into ingests (job, batch, collection, began_at, cleaned_at, discards)
select j.id, j.batch, coalesce(j.collection, 'default'), j.added_at, cast($2 as bigint), 1
from queue_jobs j where j.id = $1
on conflict (job) do update set
  cleaned_at = excluded.cleaned_at, discards = ingests.discards + 1, space_bytes = null,
  package = null, version = null, unchanged = 0, metadata = null, stores = null,
  validated_files = null, validated_bytes = null, said = null
