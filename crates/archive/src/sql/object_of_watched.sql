select id from objects where watched = $1 and place = $2 and collection = $3 and state = 1
