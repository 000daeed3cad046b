insert into events (id, object, version, path, kind, at, agent, outcome, detail, note, people, job)
values ($4, $1, $2, $5, $6, $7, $8, $9, $10, $11, $12, $3)
on conflict (id) do nothing
