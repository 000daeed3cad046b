update job_records set
  priority = coalesce($2, priority), targets = coalesce($3, targets), workspace = coalesce($4, workspace),
  needs = coalesce($5, needs)
where id = $1
