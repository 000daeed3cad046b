select version, name, applied_at from schema_versions order by version
