delete from tries where job = any ($1::bigint[])
