update batches set
  total = total + $2, open = open + $3, succeeded = succeeded + $4, failed = failed + $5,
  cancelled = cancelled + $6, updated_at = $7
where id = $1
returning open, state
