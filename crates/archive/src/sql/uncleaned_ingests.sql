-- Jobs that will not go on by themselves.
select i.job, j.status, coalesce(j.ended_at, f.failed_at),
       (select count(*) from space_reservations r where r.job = i.job), i.collection
from ingests i
join queue_jobs j on j.id = i.job
left join queue_failures f on f.job = i.job
where i.cleaned_at is null and i.job > $1 and j.status <> 'open'
order by i.job limit $2
