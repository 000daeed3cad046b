select (select min(due) from waiting where stage = $1 and state = 2),
  (select min(next_probe) from targets where opened_at is not null and probe_job is null)
