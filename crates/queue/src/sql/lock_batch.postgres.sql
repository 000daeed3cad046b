select id from batches where id = $1 for no key update
