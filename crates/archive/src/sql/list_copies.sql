select store, version, key, digest, files, bytes, stored_at, verified_at, fixity_due, state,
       checked_at, current_read_at
from copies where object = $1 order by store
