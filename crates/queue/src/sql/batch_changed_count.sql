select count(*) from jobs where batch = $1 and batch is not null and ended_at > $2
