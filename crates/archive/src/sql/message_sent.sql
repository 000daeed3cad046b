update messages set sent_at = $2 where id = $1
