update jobs set status = $2, stage = $4, ended_at = $1, ended_by = $5, ended_why = $6 where id = $3
