select path from empty_directories where object = $1 and version = $2 order by path limit $3
