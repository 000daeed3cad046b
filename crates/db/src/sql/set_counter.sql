-- For SQLite. Ids are never used again, even when the newest rows were pruned; so not max(id) + 1.
insert into counters (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value
