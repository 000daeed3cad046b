select id, pipeline, status, ended_at, added_at from jobs where id > $1 order by id limit $2
