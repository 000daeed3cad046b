select * from (
  select w.id, j.subject, w.stage, w.since
  from waiting w join job_records j on j.id = w.id
  where w.since < $2 and (cast($1 as bigint) is null or j.pipeline = $1)
  union all
  select s.id, j.subject, s.stage, s.claimed_at
  from started s join job_records j on j.id = s.id
  where s.worker is not null and s.claimed_at < $2 and (cast($1 as bigint) is null or j.pipeline = $1)
) as still
order by 4, 1 limit $3
