-- Jobs may have been added to it before: entries that were bad from the start.
update batches set
  state = 1, updated_at = $2, prepared_by = null,
  total = total + (select count(*) from batch_entries where batch = $1),
  open = open + (select count(*) from batch_entries where batch = $1)
where id = $1
returning total, open
