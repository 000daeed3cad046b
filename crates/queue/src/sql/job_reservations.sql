select resource, amount from reservations where job = $1
