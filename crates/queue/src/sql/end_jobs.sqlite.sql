insert into endings (job, status, stage, ended_at, ended_by, ended_why, token) values ($4, $2, $5, $1, $3, $6, $7)
