update waiting set state = 0, since = $1
where id in (
    select (select w.id from waiting w where w.lock = f.lock and w.state = 1 order by w.id limit 1)
    from unnest($2::text[]) as f (lock)
    where not exists (select 1 from waiting w where w.lock = f.lock and w.state = 0)
      and not exists (select 1 from started s where s.lock = f.lock))
  and state = 1
returning stage
