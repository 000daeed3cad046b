update batches set moved = moved + $2, open = open - $2, cancelled = cancelled + $2, updated_at = $3 where id = $1
