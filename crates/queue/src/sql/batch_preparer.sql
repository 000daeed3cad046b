select prepared_by from batches where id = $1
