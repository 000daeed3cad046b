update ingests set recorded_at = $2 where job = $1
