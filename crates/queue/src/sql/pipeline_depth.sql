select
  (select count(*) from waiting w join stages t on t.id = w.stage where t.pipeline = $1),
  (select count(*) from started s join stages t on t.id = s.stage where t.pipeline = $1 and s.worker is not null),
  (select count(*) from failures where pipeline = $1)
