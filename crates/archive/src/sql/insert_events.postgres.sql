insert into events (id, object, version, path, kind, at, agent, outcome, detail, note, people, job)
select r.id, $1, $2, r.path, r.kind, r.at, r.agent, r.outcome, r.detail, r.note, r.people, $3
from unnest(
  $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[],
  $12::text[])
  as r (id, path, kind, at, agent, outcome, detail, note, people)
on conflict (id) do nothing
