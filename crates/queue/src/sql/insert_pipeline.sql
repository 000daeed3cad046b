insert into pipelines (id, name, plain, coalesces, history, restart_position, settings, created_at, created_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
