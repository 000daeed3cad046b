insert into deposits (batch, source, name, options, payload, created_at)
values ($1, $2, $3, $4, $5, $6)
