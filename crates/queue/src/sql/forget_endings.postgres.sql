delete from endings where job = any ($1::bigint[])
