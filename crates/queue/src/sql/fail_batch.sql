update batches set state = 2, error = $2, updated_at = $3 where id = $1
