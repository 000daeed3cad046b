select (select total from resources where name = $1),
  coalesce((select cast(sum(amount) as bigint) from reservations where resource = $1), 0)
