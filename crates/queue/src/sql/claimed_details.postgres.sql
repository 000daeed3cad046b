select j.id, j.subject, j.payload, j.added_at, coalesce(t.attempts, 0)
from job_records j left join tries t on t.job = j.id and t.stage = $1
where j.id = any ($2::bigint[])
