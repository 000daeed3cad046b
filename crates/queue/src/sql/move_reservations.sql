update reservations set worker = $2 where job = $1
