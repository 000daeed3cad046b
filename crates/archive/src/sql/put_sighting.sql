-- Only a new look begins a new wait: several processes may see the same thing.
insert into sightings (watch, name, fingerprint, seen_at, state)
values ($1, $2, $3, $4, $5)
on conflict (watch, name) do update
set fingerprint = excluded.fingerprint, seen_at = excluded.seen_at, state = excluded.state
where sightings.fingerprint <> excluded.fingerprint
