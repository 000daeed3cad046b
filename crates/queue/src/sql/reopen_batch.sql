update batches set state = 0, error = null, updated_at = $2 where prepared_by = $1 and state in (2, 4, 5)
