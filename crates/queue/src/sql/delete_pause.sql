delete from pauses where kind = $1 and id = $2
