select name, total from resources order by name
