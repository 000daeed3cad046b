update jobs set status = 0, ended_at = null, ended_by = null, ended_why = null where id = $1
