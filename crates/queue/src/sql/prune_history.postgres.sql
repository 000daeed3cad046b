delete from history where job = any ($1::bigint[])
