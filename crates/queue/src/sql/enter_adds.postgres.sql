select case when n.n is null then null else nextval('job_ids') end,
  case when exists (select 1 from holds) then 1 else 0 end
from pipelines p left join generate_series(cast(1 as bigint), cast($2 as bigint)) as n (n) on true
where p.id = $1 and p.deleted_at is null
