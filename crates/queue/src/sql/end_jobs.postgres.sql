update jobs set status = $2, stage = r.stage, ended_at = $1, ended_by = r.who, ended_why = r.why
from unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[]) as r (id, stage, who, why)
where jobs.id = r.id
