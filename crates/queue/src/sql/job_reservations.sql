select resource, amount from reservations where job = $1 order by resource
