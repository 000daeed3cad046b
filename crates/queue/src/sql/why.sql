-- Why a job is not running.

-- name: find_budget
select (select total from resources where name = $1),
  coalesce((select cast(sum(amount) as bigint) from reservations where resource = $1), 0)

-- name: waiting_needs
select needs from waiting where id = $1
