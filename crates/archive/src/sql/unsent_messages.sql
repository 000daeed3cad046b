-- What a batch (0: none) still has to send: jobs that wait or run (0) and those that failed (3). One
-- that was cancelled has nothing more to send.
select m.sender, m.kind, w.state, w.due, w.stage, f.code, f.message
from messages m
join jobs j on j.id = m.sender
left join waiting w on w.id = m.sender
left join failures f on f.job = m.sender
where coalesce(m.batch, 0) = $1 and m.sent_at is null and m.created_at >= $2 and j.status in (0, 3)
order by m.id limit $3
