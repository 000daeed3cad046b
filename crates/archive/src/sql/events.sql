-- PREMIS events of versions, and those kept until a version has them.

-- name: keep_events (sqlite)
insert into ingest_events (job, id, event) values ($1, $2, $3) on conflict (job, id) do nothing

-- name: keep_events (postgres)
insert into ingest_events (job, id, event)
select $1, r.* from unnest($2::text[], $3::text[]) as r (id, event)
on conflict (job, id) do nothing

-- name: kept_events
select event from ingest_events where job = $1

-- name: insert_events (sqlite)
insert into events (id, object, version, path, kind, at, agent, outcome, detail, note, people, job)
values ($4, $1, $2, $5, $6, $7, $8, $9, $10, $11, $12, $3)
on conflict (id) do nothing

-- name: insert_events (postgres)
insert into events (id, object, version, path, kind, at, agent, outcome, detail, note, people, job)
select r.id, $1, $2, r.path, r.kind, r.at, r.agent, r.outcome, r.detail, r.note, r.people, $3
from unnest(
  $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[],
  $12::text[])
  as r (id, path, kind, at, agent, outcome, detail, note, people)
on conflict (id) do nothing

-- name: adopt_event
update events set object = $2 where id = $1
