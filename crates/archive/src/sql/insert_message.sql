insert into messages (id, kind, batch, job, body, created_at) values ($1, $2, $3, $4, $5, $6)
