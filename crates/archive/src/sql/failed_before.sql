-- Failed jobs that a success of this job supersedes, and whether their data were discarded.
select f.job, f.discarded
from queue_jobs b
join queue_failures f on f.pipeline = b.pipeline and f.subject = b.subject and f.job < b.id
join queue_jobs a on a.id = f.job
where b.id = $1 and (a.batch is null or b.batch is null or a.batch <> b.batch)
