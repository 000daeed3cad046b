-- Restores: what was asked for, and what was delivered where.

-- name: insert_restore_request
insert into restore_requests (batch, request) values ($1, $2)

-- name: find_restore_request
select request from restore_requests where batch = $1

-- name: page_of_empty_directories
select path, modified from empty_directories
where object = $1 and version = $2 and path > $3 order by path limit $4

-- name: find_restore
select job, batch, object, version, place, package, began_at, delivered_at, kept_until, removed_at,
       request
from restores where job = $1

-- name: save_restore
insert into restores (job, batch, object, version, place, stem, package, began_at, request)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (job) do update set package = excluded.package, cleaned_at = null

-- name: restore_delivered
update restores set delivered_at = $2, kept_until = $3, bytes = $4, missing = $5 where job = $1

-- name: delivered_totals
select coalesce(cast(sum(bytes) as bigint), 0), count(case when missing > 0 then 1 end)
from restores where batch = $1 and delivered_at is not null

-- name: restore_cleaned
update restores set cleaned_at = $2 where job = $1

-- name: restored_to
-- The object that was last delivered to a place.
select o.id, o.identifier, o.collection, o.lock, o.state, o.head, o.metadata, o.place
from restores r join objects o on o.id = r.object
where r.stem = $1 and r.delivered_at is not null and o.state = 1 and o.collection = $2
order by r.delivered_at desc limit 1

-- name: list_restores
-- What was delivered of a batch, in the order of its jobs.
select r.job, o.identifier, r.version, r.place, r.package, r.delivered_at, r.kept_until, r.removed_at,
       j.subject
from restores r join objects o on o.id = r.object join queue_jobs j on j.id = r.job
where r.batch = $1 and r.job > $2 and r.delivered_at is not null
order by r.job limit $3

-- name: thaws_of_job
select store, key, asked_at, ready_at, readable_until from thaw_requests where job = $1

-- name: record_thaw
-- One that was ready and is cold again was asked for anew.
insert into thaw_requests (job, store, key, asked_at, ready_at, readable_until)
values ($1, $2, $3, $4, $5, $6)
on conflict (job, store, key) do update set
  asked_at = case when thaw_requests.ready_at is not null and excluded.ready_at is null
    then excluded.asked_at else thaw_requests.asked_at end,
  ready_at = excluded.ready_at, readable_until = excluded.readable_until

-- name: forget_thaws
delete from thaw_requests where job = $1

-- name: uncleaned_restores
-- Jobs that will not go on by themselves.
select r.job, f.failed_at
from restores r join queue_jobs j on j.id = r.job
left join queue_failures f on f.job = r.job
where r.cleaned_at is null and r.job > $1 and j.status <> 'open'
order by r.job limit $2

-- name: expired_restores
select job from restores
where kept_until is not null and removed_at is null and kept_until <= $1
order by kept_until limit $2

-- name: restore_removed
update restores set removed_at = $2 where job = $1

-- name: begin_drill
-- Two processes may come to it at once: the first does it.
insert into restore_drills (collection, at) values ($1, $2)
on conflict (collection) do update set at = excluded.at where restore_drills.at <= $3

-- name: largest_object
select coalesce(max(id), 0) from objects

-- name: object_for_drill
select identifier, lock, head from objects
where collection = $1 and state = 1 and id >= $2 order by id limit 1
