update schema_versions set name = $2, applied_at = $3 where version = $1
