delete from waiting where id = any ($1::bigint[])
