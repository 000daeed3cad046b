select pipeline, code, count(*) from failures
where cast($1 as bigint) is null or pipeline = $1
group by pipeline, code order by count(*) desc limit 50
