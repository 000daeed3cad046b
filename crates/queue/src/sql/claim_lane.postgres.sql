select case when pg_try_advisory_xact_lock(1094927184, cast(cast($1 as bigint) * 2 as integer))
    or pg_try_advisory_xact_lock(1094927184, cast(cast($1 as bigint) * 2 + 1 as integer)) then 1 else 0 end
