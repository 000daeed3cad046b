insert into ingest_events (job, id, event)
select $1, r.* from unnest($2::text[], $3::text[]) as r (id, event)
on conflict (job, id) do nothing
