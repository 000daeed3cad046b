-- Who sent a job again.
select distinct who from queue_history where job = $1 and event = 'requeued' order by who
