insert into events (id, object, version, path, kind, at, agent, outcome, detail, note, job)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (id) do nothing
