select s.id, j.subject, coalesce(s.started_at, s.claimed_at), case when s.started_at is null then 0 else 1 end, s.progress
from started s join job_records j on j.id = s.id where s.worker = $1 order by s.claimed_at limit 100
