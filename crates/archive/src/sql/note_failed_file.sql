-- A job may fail before anything else is known of it.
insert into ingests (job, batch, collection, began_at, failed_file)
values ($1, $2, $3, $4, $5)
on conflict (job) do update set failed_file = excluded.failed_file
