insert into local_ids (collection, local_id, object) values ($1, $2, $3)
on conflict (collection, local_id) do nothing
