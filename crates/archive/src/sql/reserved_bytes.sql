select coalesce(cast(sum(bytes) as bigint), 0) from space_reservations where work_space = $1 and job <> $2
