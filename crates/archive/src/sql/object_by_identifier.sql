select id, identifier, collection, lock, state, head, metadata, place from objects where identifier = $1
