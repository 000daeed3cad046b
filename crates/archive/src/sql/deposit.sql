-- Deposits: what was handed over with a batch.

-- name: keep_cancelled_rows
insert into cancelled_rows (batch, number, subject, who, reason, at)
select batch, number, subject, cast($2 as text), cast($3 as text), cast($4 as bigint)
from queue_batch_entries where batch = $1

-- name: deposit_examined
update deposits set kind = $2, payload = coalesce($3, payload) where batch = $1

-- name: insert_deposit
insert into deposits (batch, source, name, options, payload, created_at)
values ($1, $2, $3, $4, $5, $6)

-- name: find_deposit
select batch, kind, source, name, options, payload, created_at from deposits where batch = $1
