update pipelines set restart_position = $2 where id = $1
