select batch, collection, targets, workspace, priority from job_records where id = $1
