delete from reservations where job = any ($1::bigint[]) returning resource
