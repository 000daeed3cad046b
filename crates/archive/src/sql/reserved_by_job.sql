select bytes from space_reservations where job = $1
