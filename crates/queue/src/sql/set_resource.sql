insert into resources (name, total) values ($1, $2) on conflict (name) do update set total = excluded.total
