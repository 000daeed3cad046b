select name from targets where name = $1 and opened_at is not null
for share
