-- Entries that never became jobs count as cancelled: they were submitted.
update batches set open = open - $2, cancelled = cancelled + $2, updated_at = $3 where id = $1
