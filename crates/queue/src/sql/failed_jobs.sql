-- With each failed job, the newest failed one that takes its place: of its pipeline, collection
-- and subject, not of its batch, and fitting the filter too.
select f.job,
  coalesce((select max(n.job) from failures n join job_records k on k.id = n.job
   where n.pipeline = f.pipeline and n.subject = f.subject and n.job > f.job and n.recoverable >= f.recoverable
     and (k.batch is null or j.batch is null or k.batch <> j.batch)
     and k.collection is not distinct from j.collection
     and (cast($2 as bigint) is null or n.stage = $2)
     and (cast($3 as text) is null or n.code = $3)
     and (cast($4 as text) is null or n.target = $4)
     and (cast($5 as bigint) is null or k.batch = $5)), f.job),
  f.recoverable
from failures f join job_records j on j.id = f.job
where f.job > $6
  and (cast($1 as bigint) is null or f.pipeline = $1)
  and (cast($2 as bigint) is null or f.stage = $2)
  and (cast($3 as text) is null or f.code = $3)
  and (cast($4 as text) is null or f.target = $4)
  and (cast($5 as bigint) is null or j.batch = $5)
order by f.job limit $7
