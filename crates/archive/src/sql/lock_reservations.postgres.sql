select count(*) from (select pg_advisory_xact_lock(6020, 1)) as locked
