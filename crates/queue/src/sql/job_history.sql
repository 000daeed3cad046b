select job, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token
from history where job = $1 and id > $2 order by id limit $3
