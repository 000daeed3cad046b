select id, priority, due, lock, begun, batch, collection, targets, workspace, needs
from waiting where state = 4 and blocked_on = $1 and stage = $2 order by id limit $3
