-- Rows that were accepted and have not become jobs.
select number, subject from queue_batch_entries where batch = $1 and number > $2 order by number limit $3
