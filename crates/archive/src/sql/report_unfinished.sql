-- Jobs that wait or run: 0 is neither failed nor ended.
select j.id, j.subject, w.state, s.worker, coalesce(t.name, '')
from jobs j
left join waiting w on w.id = j.id
left join started s on s.lock = j.lock and s.id = j.id
left join stages t on t.id = coalesce(w.stage, s.stage)
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status = 0
order by j.id limit $3
