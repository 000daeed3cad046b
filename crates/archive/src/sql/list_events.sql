select id, kind, at, agent, outcome, detail, note, version, path, job, people
from events
where object = $1 and (at > $2 or (at = $2 and id > $3))
order by at, id limit $4
