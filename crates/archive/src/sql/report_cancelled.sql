-- Cancelled by a person, or because a later job superseded it.
select j.id, j.subject, j.ended_by, j.ended_why, r.by_job, r.by_batch, r.content
from queue_jobs j
left join queue_replacements r on r.job = j.id
where j.batch = $1 and j.batch is not null and j.id > $2 and j.status = 'cancelled'
order by j.id limit $3
