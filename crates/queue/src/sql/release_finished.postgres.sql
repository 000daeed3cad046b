-- I4: nothing happens without the current token and worker, also after waiting for someone who changes
-- the row. Tokens come in ascending order, so that each row finds its own by halving; and each row is
-- looked up once, by its key, whatever PostgreSQL believes about the size of the table.
delete from started
where worker = $1 and lock = any ($2::text[])
  and id = ($3::bigint[])[width_bucket(token, $4::bigint[])]
  and token = ($4::bigint[])[width_bucket(token, $4::bigint[])]
returning token
