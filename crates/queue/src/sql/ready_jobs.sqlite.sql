select id, priority, due, lock, begun, batch, collection, targets, workspace, needs
from waiting
where stage = $1 and state = 0 and (priority, due, id) > ($2, $3, $4)
order by priority, due, id limit $5
