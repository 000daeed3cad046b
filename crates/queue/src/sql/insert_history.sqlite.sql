insert into history (job, id, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
