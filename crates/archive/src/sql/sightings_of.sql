select name, fingerprint, seen_at, state, batch from sightings where watch = $1
