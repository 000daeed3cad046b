-- Space in work spaces that jobs have reserved.

-- name: lock_reservations (sqlite)
select 1 where false

-- name: lock_reservations (postgres)
select count(*) from (select pg_advisory_xact_lock(6020, 1)) as locked

-- name: reserved_bytes
select coalesce(cast(sum(bytes) as bigint), 0) from space_reservations where work_space = $1 and job <> $2

-- name: reserve_space
insert into space_reservations (job, work_space, bytes, at) values ($1, $2, $3, $4)
on conflict (job) do update set work_space = excluded.work_space, bytes = excluded.bytes

-- name: failed_with_data
-- Failed jobs whose work data are still kept.
select count(*) from ingests i join queue_failures f on f.job = i.job where i.cleaned_at is null

-- name: give_back_space
delete from space_reservations where job = $1

-- name: reserved_by_job
select bytes from space_reservations where job = $1
