update objects set watched = null where id = $1
