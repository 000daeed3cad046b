select stage, count(*) from failures group by stage
