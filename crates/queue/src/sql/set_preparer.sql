update batches set prepared_by = $2 where id = $1
