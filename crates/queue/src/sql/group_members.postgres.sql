select id, stage, lock, due, begun from waiting
where id > $3
  and (cast($1 as bigint) is null or batch = $1) and (cast($2 as text) is null or collection = $2)
  and case when $5::bigint = 1 then state = 3 and blocked_on = $6 else state <> 3 end
order by id limit $4
for update
