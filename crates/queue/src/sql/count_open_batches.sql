select count(*), coalesce(cast(sum(open) as bigint), 0) from batches where state in (1, 2, 5)
