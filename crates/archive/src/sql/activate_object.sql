update objects set state = 1, title = $3, metadata = $4, updated_at = $5, place = $6, watched = null,
  created_at = case when head = 0 then $5 else created_at end,
  head = $2,
  files = (select count(*) from files f where f.object = $1 and f.until is null),
  bytes = (select coalesce(sum(size), 0) from files f where f.object = $1 and f.until is null)
where id = $1
