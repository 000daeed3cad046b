select id, identifier, collection, lock, state, head, metadata from objects where identifier = $1
