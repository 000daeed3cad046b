-- Messages that wait or are being sent.
select count(*) from (
  select w.job from queue_waiting w where w.stage = $1
  union all
  select s.job from queue_leases s where s.stage = $1 and s.worker is not null
) left_over
