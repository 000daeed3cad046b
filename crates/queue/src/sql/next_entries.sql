select number, subject, lock, payload from batch_entries where batch = $1 order by number limit $2
