-- The lock stays with the job, and the lease with its worker; the token is a new one (I4).
update started set stage = $4, token = $5, claimed_at = $1, started_at = $1, error_seen = null, progress = null,
  probe = null
where lock = $2 and id = $3
