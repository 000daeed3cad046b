select id from jobs where batch = $1 and batch is not null and id > $2 and status in (0, 3) order by id limit $3
