select name, applied_at from schema_versions where version = $1
