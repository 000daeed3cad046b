select local_id from local_ids where object = $1 order by local_id
