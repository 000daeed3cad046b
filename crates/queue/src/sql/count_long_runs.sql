select count(*) from started where worker is not null and started_at < $1
