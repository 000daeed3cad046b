-- Rows of a batch that a person cancelled.
select j.id, j.subject, j.status, j.stage, null, j.ended_why, j.ended_by
from jobs j left join replacements r on r.job = j.id and r.at is not null
where j.batch = $1 and j.batch is not null and j.status = 5 and r.job is null
order by j.id limit $2
