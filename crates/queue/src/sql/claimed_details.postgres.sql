select id, subject, payload, added_at, coalesce((select attempts from tries where job = job_records.id and stage = $1), 0)
from job_records where id = any ($2::bigint[])
