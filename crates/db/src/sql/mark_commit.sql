-- For PostgreSQL only. What has written nothing leaves no mark, and costs no flush. If the transaction
-- did not begin between the times that are given, the mark has no time, and is refused.
insert into commit_marks (id, number, at)
select $1, $2, case when begun.at < $3 or begun.at > $4 then null else begun.at end
from (select cast(extract(epoch from now()) * 1000000 as bigint) as at) as begun
where pg_current_xact_id_if_assigned() is not null
on conflict (id) do update set number = excluded.number, at = excluded.at
