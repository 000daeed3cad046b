delete from reservations where job = $1 returning resource
