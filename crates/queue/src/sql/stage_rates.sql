select stage, cast(sum(succeeded) as bigint), cast(sum(errors) as bigint),
  cast(sum(case when minute >= $2 and minute < $3 then succeeded else 0 end) as bigint)
from minutes where minute > $1 group by stage
