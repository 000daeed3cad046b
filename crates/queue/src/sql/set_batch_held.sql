update batches set held = $2, updated_at = $3 where id = $1
