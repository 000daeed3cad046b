insert into ingest_events (job, id, event) values ($1, $2, $3) on conflict (job, id) do nothing
