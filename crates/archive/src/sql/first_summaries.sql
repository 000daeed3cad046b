-- Of jobs that made the first version of an object.
select i.summary from ingests i
where i.batch = $1 and i.version = 1 and i.recorded_at is not null and i.summary is not null
order by i.job limit $2
