-- Between runs the lock stays with the job (I3), and no worker has it.
update started set worker = null, started_at = null, stage = ($3::bigint[])[array_position($1::text[], lock)],
  error_seen = null, progress = null, probe = null
where lock = any ($1::text[]) and id = any ($2::bigint[])
