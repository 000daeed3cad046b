insert into objects (id, identifier, collection, lock, state, job, head, title, files, bytes,
                     created_at, updated_at)
values ($1, $2, $3, $4, 0, $5, 0, $6, 0, 0, $7, $7)
on conflict (identifier) do nothing
