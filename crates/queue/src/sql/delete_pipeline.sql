update pipelines set deleted_at = $2 where id = $1 and deleted_at is null
