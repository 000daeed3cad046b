select store, version, key, digest, files, bytes, stored_at, verified_at, fixity_due
from copies where object = $1 order by store
