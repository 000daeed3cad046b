-- Each state is counted from the index that has it alone: most jobs are ready, and none of their rows is read.
select c.stage, c.state, c.count, (select j.added_at from job_records j where j.id = c.oldest)
from (
  select stage, 0 as state, count(*) as count, min(id) as oldest from waiting where state = 0 group by stage
  union all
  select stage, 1, count(*), min(id) from waiting where state = 1 group by stage
  union all
  select stage, 2, count(*), min(id) from waiting where state = 2 group by stage
  union all
  select stage, state, count(*), min(id) from waiting where blocked_on is not null group by stage, state
) as c
