-- For PostgreSQL; SQLite has counters.
select nextval(cast(cast($1 as text) as regclass)) from generate_series(1, cast($2 as bigint))
