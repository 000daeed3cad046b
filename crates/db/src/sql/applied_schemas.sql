select version from schema_versions
