update waiting set
  priority = case when $3 < priority then $3 else priority end, due = case when $4 < due then $4 else due end
where lock = $1 and coalesce_key = $2
returning id
