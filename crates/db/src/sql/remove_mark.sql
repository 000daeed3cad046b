delete from schema_versions where version = $1
