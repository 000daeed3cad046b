select c.stage, c.state, c.count, (select j.added_at from job_records j where j.id = c.oldest)
from (select stage, state, count(*) as count, min(id) as oldest from waiting group by stage, state) as c
