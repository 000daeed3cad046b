-- The lock stays with the job, and the lease with its worker; the token is a new one (I4).
update started set stage = ($4::bigint[])[array_position($2::text[], lock)],
  token = ($5::bigint[])[array_position($2::text[], lock)], claimed_at = $1, started_at = $1, error_seen = null,
  progress = null, probe = null
where lock = any ($2::text[]) and id = any ($3::bigint[])
