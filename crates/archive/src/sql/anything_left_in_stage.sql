-- What is held waits for a person.
select 1 from queue_waiting where stage = $1 and state <> 'held'
union all
select 1 from queue_leases where stage = $1 and worker is not null
limit 1
