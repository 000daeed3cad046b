-- Batches that a job prepares.

-- name: set_preparer
update batches set prepared_by = $2 where id = $1

-- name: batch_preparer
select prepared_by from batches where id = $1

-- name: prepared_batches (sqlite)
select id, prepared_by from batches where state in (0, 2, 4, 5) and prepared_by = $1

-- name: prepared_batches (postgres)
select id, prepared_by from batches where state in (0, 2, 4, 5) and prepared_by = any ($1::bigint[]) order by id

-- name: reopen_batch
update batches set state = 0, error = null, updated_at = $2 where prepared_by = $1 and state in (2, 4, 5)

-- name: prepares_held_batch
select b.id from batches b join holds h on h.kind = 'batch' and h.name = cast(b.id as text)
where b.state = 0 and b.prepared_by = $1
