-- Its depositor is still to be told what became of it.
update sightings set state = $4 where watch = $1 and name = $2 and fingerprint = $3
