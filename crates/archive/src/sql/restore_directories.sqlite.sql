insert into empty_directories (object, version, path, modified) values ($1, $2, $3, $4)
