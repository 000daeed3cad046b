delete from targets where name = $1 and opened_at is null and errors = 0
