-- I4: nothing happens without the current token and worker. Each row is looked up by its key, whatever
-- PostgreSQL believes about the size of the table. A lease that ends meanwhile takes its row with it.
delete from started
where worker = $1 and lock = any (array(
  select s.lock
  from unnest($2::text[], $3::bigint[], $4::bigint[]) as r (lock, id, token),
    lateral (
      select lock from started where lock = r.lock and id = r.id and token = r.token and worker = $1 offset 0
    ) as s))
returning token
