select pg_advisory_xact_lock_shared(1094927182, 1)
