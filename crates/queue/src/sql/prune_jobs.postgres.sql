delete from jobs where id = any ($1::bigint[])
