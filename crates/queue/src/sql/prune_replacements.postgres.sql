delete from replacements where job = any ($1::bigint[])
