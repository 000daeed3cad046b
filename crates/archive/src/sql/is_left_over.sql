-- 4 succeeded, 5 cancelled: nothing is needed any more, nor once the version is recorded. Of other
-- jobs only what was discarded.
select 1 from jobs j
left join ingests i on i.job = j.id
where j.id = $1 and (j.status in (4, 5) or i.recorded_at is not null or i.discards > $2)
