insert into endings (job, status, stage, ended_at, ended_by, ended_why, token)
select r.job, $2, r.stage, $1, $3, r.why, r.token
from unnest($4::bigint[], $5::bigint[], $6::text[], $7::bigint[]) as r (job, stage, why, token)
