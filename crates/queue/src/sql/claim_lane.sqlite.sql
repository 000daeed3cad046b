select 1 + 0 * $1
