delete from checkpoints where job = $1 and stage = $2
