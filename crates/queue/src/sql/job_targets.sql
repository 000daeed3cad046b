select targets from jobs where id = $1
