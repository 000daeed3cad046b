update batches set moved = moved + $2, total = total - $3, open = open - $3, updated_at = $4 where id = $1
