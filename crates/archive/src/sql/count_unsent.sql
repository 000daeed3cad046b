-- Messages that wait or are being sent; failed ones have no row in either table.
select count(*) from (
  select w.id from waiting w where w.stage = $1
  union all
  select s.id from started s where s.stage = $1 and s.worker is not null
) left_over
