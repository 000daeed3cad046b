-- Jobs that will not go on by themselves; 3 failed, 4 succeeded, 5 cancelled.
select i.job, j.status, coalesce(j.ended_at, f.failed_at),
       (select count(*) from space_reservations r where r.job = i.job), i.collection
from ingests i
join jobs j on j.id = i.job
left join failures f on f.job = i.job
where i.cleaned_at is null and i.job > $1 and j.status in (3, 4, 5)
order by i.job limit $2
