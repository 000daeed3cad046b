update targets set
  probe_job = null, probe_token = null,
  probe_wait = case when probe_wait * $3 > $4 then $4 else probe_wait * $3 end,
  next_probe = $2 + case when probe_wait * $3 > $4 then $4 else probe_wait * $3 end
where name = $1 and opened_at is not null
