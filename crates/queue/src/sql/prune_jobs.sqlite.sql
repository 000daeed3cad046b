delete from jobs where id = $1
