delete from sightings where watch = $1 and name = $2 and fingerprint = $3
