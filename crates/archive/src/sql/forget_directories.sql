delete from empty_directories where object = $1
