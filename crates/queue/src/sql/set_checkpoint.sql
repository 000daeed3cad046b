insert into checkpoints (job, stage, key, value, at) values ($1, $2, $3, $4, $5)
on conflict (job, stage, key) do update set value = excluded.value, at = excluded.at
