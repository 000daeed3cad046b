-- 3: held, which waits for a person.
select 1 from waiting where stage = $1 and state <> 3
union all
select 1 from started where stage = $1 and worker is not null
limit 1
