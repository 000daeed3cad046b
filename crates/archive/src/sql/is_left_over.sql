-- Nothing is needed of a job that succeeded or was cancelled, nor once the version is recorded. Of
-- other jobs only what was discarded is left over.
select 1 from queue_jobs j
left join ingests i on i.job = j.id
where j.id = $1 and (j.status in ('succeeded', 'cancelled') or i.recorded_at is not null or i.discards > $2)
