delete from local_ids where object = $1
