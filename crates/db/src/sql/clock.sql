-- In microseconds; asked of PostgreSQL only.
select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)
