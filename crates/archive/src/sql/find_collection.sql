select profile from collections where name = $1
