delete from resources where name = $1
