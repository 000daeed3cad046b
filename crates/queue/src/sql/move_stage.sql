update stages set position = $2 where id = $1
