select pg_advisory_xact_lock(1094927182, 1)
