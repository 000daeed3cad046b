update jobs set lock = $2 where id = $1
