select job, summary from ingests
where batch = $1 and job > $2 and recorded_at is not null and summary is not null
order by job limit $3
