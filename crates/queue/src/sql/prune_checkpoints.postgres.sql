delete from checkpoints where job = any ($1::bigint[])
