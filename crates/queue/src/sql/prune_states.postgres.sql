delete from states where job = any ($1::bigint[])
