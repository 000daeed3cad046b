-- Budgets: how much of a resource there is, and which jobs have reserved some of it.

-- name: lock_resources (sqlite)
select name, total from resources order by name

-- name: lock_resources (postgres)
-- Claims that share a budget take turns, or two would both take the last of it.
select name, total from resources order by name for update

-- name: used_resources
select resource, cast(sum(amount) as bigint), cast(sum(case when worker = $1 then amount else 0 end) as bigint)
from reservations group by resource

-- name: reserve
insert into reservations (job, resource, amount, worker) values ($1, $2, $3, $4)

-- name: free_reservations (sqlite)
delete from reservations where job = $1 returning resource

-- name: free_reservations (postgres)
delete from reservations where job = any ($1::bigint[]) returning resource

-- name: set_resource
insert into resources (name, total) values ($1, $2) on conflict (name) do update set total = excluded.total

-- name: unset_resource
delete from resources where name = $1
