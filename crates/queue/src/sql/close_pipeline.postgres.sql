select pg_advisory_xact_lock(1094927183, cast(cast($1 as bigint) as integer))
