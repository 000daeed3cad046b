insert into messages (id, kind, batch, job, body, created_at, sender) values ($1, $2, $3, $4, $5, $6, $7)
