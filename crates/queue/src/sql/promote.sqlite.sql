update waiting set state = 0, since = $1
where id = (select id from waiting where lock = $2 and state = 1 order by id limit 1)
  and not exists (select 1 from waiting where lock = $2 and state = 0)
  and not exists (select 1 from started where lock = $2)
returning stage
