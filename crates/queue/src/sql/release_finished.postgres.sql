-- I4: nothing happens without the current token and worker.
delete from started
using unnest($2::text[], $3::bigint[], $4::bigint[]) as r (lock, id, token)
where started.lock = r.lock and started.id = r.id and started.token = r.token and started.worker = $1
returning started.token
