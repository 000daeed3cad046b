select coalesce(cast(sum(i.unchanged) as bigint), 0),
       coalesce(cast(sum(f.bytes) as bigint), 0), max(j.ended_at)
from queue_jobs j
left join ingests i on i.job = j.id
left join versions f on f.object = i.object and f.number = i.version and f.job = i.job
where j.batch = $1 and j.batch is not null
