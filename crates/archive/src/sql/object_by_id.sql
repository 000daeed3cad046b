select id, identifier, collection, state, head, title, files, bytes, created_at, updated_at, metadata, lock
from objects where id = $1
