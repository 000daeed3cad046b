select s.id, s.stage, s.claimed_at, k.name from started s left join workers k on k.id = s.worker where s.lock = $1
