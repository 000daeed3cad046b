select stage, count(*) from started where worker is not null group by stage
