select j.id, j.subject, j.status, j.stage, f.code, j.ended_why, j.ended_by
from jobs j left join failures f on f.job = j.id
where j.batch = $1 and j.batch is not null and j.ended_at > $2 order by j.id limit $3
