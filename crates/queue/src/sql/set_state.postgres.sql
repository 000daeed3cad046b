update waiting set state = ($3::smallint[])[array_position($2::bigint[], id)], since = $1, blocked_on = null, why = null
where id = any ($2::bigint[])
