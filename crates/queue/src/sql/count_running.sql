select stage, count(started_at), count(*) - count(started_at) from started where worker is not null group by stage
