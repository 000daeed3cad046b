select job, batch, collection, space_bytes, package, object, version, unchanged, metadata, stores,
       summary, began_at, recorded_at
from ingests where job = $1
