update stages set settings = $2 where id = $1
