select event from ingest_events where job = $1
