-- Failed jobs that a success of this job may supersede, whether their data were discarded, what they and
-- this job were to bring in, and what is known of them.
select f.job, f.discarded, a.payload, b.payload, i.summary
from job_records b
join failures f on f.pipeline = b.pipeline and f.subject = b.subject and f.job < b.id
join job_records a on a.id = f.job
left join ingests i on i.job = f.job
where b.id = $1 and (a.batch is null or b.batch is null or a.batch <> b.batch)
  and a.collection is not distinct from b.collection
