-- For PostgreSQL only. Nothing is lost with a notification, so it need not wait for the disk.
select set_config('synchronous_commit', 'off', true), pg_notify('accession_wake', $1)
