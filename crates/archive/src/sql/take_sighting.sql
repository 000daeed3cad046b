-- Whoever changes the row has the package.
update sightings set state = $5, batch = $4
where watch = $1 and name = $2 and fingerprint = $3 and state = $6
