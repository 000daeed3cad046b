insert into endings (job, status, stage, ended_at, ended_by, ended_why)
select r.job, $2, r.stage, $1, $3, r.why
from unnest($4::bigint[], $5::bigint[], $6::text[]) as r (job, stage, why)
