-- Pauses of everything, of a pipeline or of a stage.

-- name: insert_pause
insert into pauses (kind, id, who, at, reason) values ($1, $2, $3, $4, $5) on conflict (kind, id) do nothing

-- name: delete_pause
delete from pauses where kind = $1 and id = $2

-- name: all_pauses
select kind, id, who, at, reason from pauses order by at
