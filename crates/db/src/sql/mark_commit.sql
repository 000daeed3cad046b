-- For PostgreSQL only. What has written nothing leaves no mark, and costs no flush.
insert into commit_marks (id, number, at)
select cast($1 as bigint), cast($2 as bigint), cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)
where pg_current_xact_id_if_assigned() is not null
on conflict (id) do update set number = excluded.number, at = excluded.at
