-- Who sent a job again.
select distinct who from history where job = $1 and event = 'requeued' order by who
