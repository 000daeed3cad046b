delete from batch_entries where batch = $1 and number <= $2
