update workers set ended_at = $2, ended_why = $3 where id = $1 and ended_at is null
