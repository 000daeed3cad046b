insert into received (place, batch) values ($1, $2)
on conflict (place) do update set batch = excluded.batch
