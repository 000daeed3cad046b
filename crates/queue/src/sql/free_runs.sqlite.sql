-- Between runs the lock stays with the job (I3), and no worker has it.
update started set worker = null, started_at = null, stage = $3, error_seen = null, progress = null, probe = null
where lock = $1 and id = $2
