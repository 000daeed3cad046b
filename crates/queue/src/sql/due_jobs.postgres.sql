select id, lock from waiting where stage = $1 and state = 2 and due <= $2 order by due limit $3
for update skip locked
