select key, value from checkpoints where job = $1 and stage = $2 order by key
