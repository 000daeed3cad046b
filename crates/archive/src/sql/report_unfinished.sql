-- Jobs that wait or run.
select j.id, j.subject, w.state, s.worker, coalesce(t.name, '')
from queue_jobs j
left join queue_waiting w on w.job = j.id
left join queue_leases s on s.lock = j.lock and s.job = j.id
left join queue_stages t on t.id = coalesce(w.stage, s.stage)
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status = 'open'
order by j.id limit $3
