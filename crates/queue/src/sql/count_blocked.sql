-- What jobs wait for, held ones too, from the index alone.
select blocked_on, count(*), min(since) from waiting where blocked_on is not null group by blocked_on order by 2 desc
limit 100
