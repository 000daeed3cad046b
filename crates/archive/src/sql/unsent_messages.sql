-- What a batch (0: none) still has to send: jobs that wait or run, and those that failed. A job that
-- was cancelled has nothing more to send.
select m.sender, m.kind, w.state, w.due, w.stage, f.code, f.message
from messages m
join queue_jobs j on j.id = m.sender
left join queue_waiting w on w.job = m.sender
left join queue_failures f on f.job = m.sender
where coalesce(m.batch, 0) = $1 and m.sent_at is null and m.created_at >= $2 and j.status in ('open', 'failed')
order by m.id limit $3
