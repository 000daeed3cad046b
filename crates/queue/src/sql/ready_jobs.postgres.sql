select id, priority, due, lock, begun, batch, collection, targets, workspace, needs
from waiting
where stage = $1 and state = 0 and (priority, due, id) > ($2::smallint, $3::bigint, $4::bigint)
order by priority, due, id limit $5
for update skip locked
