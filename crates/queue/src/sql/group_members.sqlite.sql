select id, stage, lock, due, begun from waiting
where id > $3
  and ($1 is null or batch = $1) and ($2 is null or collection = $2)
  and case when $5 = 1 then state = 3 and blocked_on = $6 else state <> 3 end
order by id limit $4
