-- Retries and waits do not move a job: one whose history is kept has been in its stage since it was
-- added, requeued or moved there.
select id, subject, stage, since from (
  select w.id, j.subject, w.stage, case when w.begun = 1 then coalesce((
      select max(h.at) from history h
      where h.job = w.id and h.event in ('added', 'moved', 'requeued') and h.at <= w.since
    ), w.since) else w.since end as since
  from waiting w join job_records j on j.id = w.id
  where cast($1 as bigint) is null or j.pipeline = $1
  union all
  select s.id, j.subject, s.stage, coalesce((
      select max(h.at) from history h
      where h.job = s.id and h.event in ('added', 'moved', 'requeued') and h.at <= s.claimed_at
    ), s.claimed_at) as since
  from started s join job_records j on j.id = s.id
  where s.worker is not null and (cast($1 as bigint) is null or j.pipeline = $1)
) as still
where since < $2
order by 4, 1 limit $3
