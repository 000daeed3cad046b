select s.id, s.lock, s.token, j.batch from started s join job_records j on j.id = s.id where s.worker = $1 order by s.lock
