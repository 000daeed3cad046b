select j.id, j.pipeline, coalesce(w.stage, s.stage, f.stage, j.stage), j.subject, j.status, w.state, j.lock, j.priority, w.due,
  j.batch, j.collection, j.added_at, j.added_by, coalesce(w.since, s.started_at, s.claimed_at), s.token, s.worker, k.name,
  s.progress, coalesce(s.error_seen, f.message), f.code, f.target, coalesce(f.note, w.why), f.needs_review, f.recoverable,
  s.cancel_by, j.ended_at, j.ended_by, j.ended_why, length(j.payload)
from waiting w join jobs j on j.id = w.id
left join started s on s.lock = j.lock and s.id = j.id
left join failures f on f.job = j.id
left join workers k on k.id = s.worker
where w.id < $2 and cast($8 as bigint) is null and (case when w.state = 3 then 1 else 0 end) = $7
  and (cast($1 as bigint) is null or j.pipeline = $1)
  and (cast($4 as bigint) is null or j.batch = $4)
  and (cast($5 as text) is null or j.collection = $5)
  and (cast($6 as text) is null or j.subject = $6)
  and (cast($9 as bigint) is null or coalesce(w.stage, s.stage, f.stage, j.stage) = $9)
order by w.id desc limit $3
