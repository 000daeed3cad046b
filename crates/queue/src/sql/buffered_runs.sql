-- Jobs of a group that are claimed and not started, or one such job.
select s.lock, s.id, s.token, s.worker, s.stage, j.batch
from started s join job_records j on j.id = s.id
where s.worker is not null and s.started_at is null
  and (cast($1 as bigint) is null or j.batch = $1)
  and (cast($2 as text) is null or j.collection = $2)
  and (cast($3 as bigint) is null or s.id = $3)
order by s.worker, s.lock
