-- I4: nothing happens without the current token and worker.
delete from started
using unnest($3::text[], $4::bigint[], $5::bigint[]) as r (lock, id, token)
where started.lock = r.lock and started.id = r.id and started.token = r.token and started.worker = $1
  and position(',' || started.stage || ',' in $2::text) > 0
returning started.id, started.token, started.stage, started.probe
