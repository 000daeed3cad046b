select subject from jobs where id = $1
