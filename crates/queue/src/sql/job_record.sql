select batch, collection, targets, workspace, priority from jobs where id = $1
