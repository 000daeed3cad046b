insert into objects (id, identifier, collection, lock, state, job, head, title, metadata, files,
                     bytes, created_at, updated_at, place, watched)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, $11, $12, $13)
