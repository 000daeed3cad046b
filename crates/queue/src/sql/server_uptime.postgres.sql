select cast(extract(epoch from clock_timestamp() - pg_postmaster_start_time()) * 1000000 as bigint)
