select id, stage, lock from waiting where blocked_on = $1 and state = $2 order by since, id limit $3
for update skip locked
