delete from sightings where watch = $1 and name = $2 and batch = $3 and state = $4
