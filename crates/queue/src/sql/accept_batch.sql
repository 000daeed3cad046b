update batches set
  state = 1, updated_at = $2,
  total = (select count(*) from batch_entries where batch = $1), open = (select count(*) from batch_entries where batch = $1)
where id = $1
returning total
