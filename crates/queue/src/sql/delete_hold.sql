delete from holds where kind = $1 and name = $2
