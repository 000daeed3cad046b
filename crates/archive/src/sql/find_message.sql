select body, created_at, sent_at from messages where id = $1
