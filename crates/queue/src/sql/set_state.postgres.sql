update waiting set state = r.state, since = $1, blocked_on = null, why = null
from unnest($2::bigint[], $3::smallint[]) as r (id, state)
where waiting.id = r.id
