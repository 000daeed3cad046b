select id from batches where id = $1
