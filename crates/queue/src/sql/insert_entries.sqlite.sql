insert into batch_entries (batch, number, subject, lock, payload) values ($1, $2, $3, $4, $5)
on conflict (batch, number) do nothing
