update jobs set targets = $2 where id = $1
