select name, profile, created_at, created_by, updated_at from collections order by name
