select batch, kind, source, name, options, payload, created_at from deposits where batch = $1
