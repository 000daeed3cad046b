select j.id, j.pipeline, coalesce(w.stage, s.stage, f.stage, j.stage), j.subject, j.status, w.state, j.lock, j.priority, w.due,
  j.batch, j.collection, j.added_at, j.added_by, coalesce(w.since, s.started_at, s.claimed_at), s.token, s.worker, k.name,
  s.progress, coalesce(s.error_seen, f.message), f.code, f.target, coalesce(f.note, w.why), f.needs_review, f.recoverable,
  s.cancel_by, j.ended_at, j.ended_by, j.ended_why, length(j.payload)
from jobs j
left join waiting w on w.id = j.id
left join started s on s.lock = j.lock and s.id = j.id
left join failures f on f.job = j.id
left join workers k on k.id = s.worker
where j.id = $1
