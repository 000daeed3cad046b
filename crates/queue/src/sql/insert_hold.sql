insert into holds (kind, name, who, at, reason) values ($1, $2, $3, $4, $5) on conflict (kind, name) do nothing
