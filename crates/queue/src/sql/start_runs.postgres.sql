update started set started_at = $1
where worker = $2 and lock = any ($3::text[]) and id = any ($4::bigint[]) and token = any ($5::bigint[])
returning id
