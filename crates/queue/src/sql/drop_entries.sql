delete from batch_entries where batch = $1
