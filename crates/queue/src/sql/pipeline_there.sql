select id from pipelines where id = $1 and deleted_at is null
