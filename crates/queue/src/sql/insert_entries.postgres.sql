insert into batch_entries (batch, number, subject, lock, payload)
select $1, r.* from unnest($2::bigint[], $3::text[], $4::text[], $5::bytea[]) as r
on conflict (batch, number) do nothing
