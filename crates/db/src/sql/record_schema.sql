insert into schema_versions (version, name, applied_at) values ($1, $2, $3)
