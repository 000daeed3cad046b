delete from reservations where job = $1
