insert into versions (object, number, job, batch, submitter, message, metadata, files, bytes,
                      files_new, files_changed, files_absent, created_at)
values ($1, $2, $3, $4, $5, $6, $7, 0, 0, $8, $9, $10, $11)
on conflict (object, number) do nothing
