select w.id from waiting w
where w.stage = $1 and w.state = 0 and not exists (select 1 from started s where s.stage = $1 and s.worker is not null)
order by w.priority, w.due, w.id limit 1
