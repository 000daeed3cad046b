insert into states (job, stage, state, at) values ($1, $2, $3, $4)
on conflict (job, stage) do update set state = excluded.state, at = excluded.at
