update pipelines set coalesces = $2, history = $3, settings = $4 where id = $1
