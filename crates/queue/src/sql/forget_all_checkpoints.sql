delete from checkpoints where job = $1
