select id, prepared_by from batches where state in (0, 2, 4, 5) and prepared_by = any ($1::bigint[]) order by id
