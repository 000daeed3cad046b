insert into pauses (kind, id, who, at, reason) values ($1, $2, $3, $4, $5) on conflict (kind, id) do nothing
