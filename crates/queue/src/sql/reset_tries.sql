update tries set attempts = 0, interruptions = 0 where job = $1 and stage = $2
