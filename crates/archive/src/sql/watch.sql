-- Drop folders and receiving buckets: what was seen, taken and told.

-- name: put_sighting
-- Only a new look begins a new wait: several processes may see the same thing.
insert into sightings (watch, name, fingerprint, seen_at, state)
values ($1, $2, $3, $4, $5)
on conflict (watch, name) do update
set fingerprint = excluded.fingerprint, seen_at = excluded.seen_at, state = excluded.state
where sightings.fingerprint <> excluded.fingerprint

-- name: leave_sighting
-- Its depositor is still to be told what became of it.
update sightings set state = $4 where watch = $1 and name = $2 and fingerprint = $3

-- name: object_of_watched
select id from objects where watched = $1 and place = $2 and collection = $3 and state = 1

-- name: forget_watched
update objects set watched = null where id = $1

-- name: take_sighting
-- Whoever changes the row has the package.
update sightings set state = $5, batch = $4
where watch = $1 and name = $2 and fingerprint = $3 and state = $6

-- name: forget_sighting
delete from sightings where watch = $1 and name = $2 and fingerprint = $3

-- name: sightings_of
select name, fingerprint, seen_at, state, batch from sightings where watch = $1

-- name: objects_of_batch
-- What was unchanged made no version: the object has the one before.
select o.identifier, coalesce(i.version, 0) - i.unchanged, i.unchanged
from ingests i
join objects o on o.id = i.object
join queue_jobs j on j.id = i.job
where i.batch = $1 and j.status = 'succeeded'
order by i.job
limit $2

-- name: put_received
insert into received (place, batch) values ($1, $2)
on conflict (place) do update set batch = excluded.batch

-- name: list_received
select place, batch from received

-- name: forget_received
delete from received where place = $1 and batch = $2

-- name: tell_sighting
update sightings set state = $5
where watch = $1 and name = $2 and batch = $3 and state = $4

-- name: forget_told_sighting
delete from sightings where watch = $1 and name = $2 and batch = $3 and state = $4

-- name: newest_batches_of
-- Among the newest thousand: there may be millions.
select id from (select id, submitter from queue_batches order by id desc limit 1000) as newest
where submitter = $1 order by id desc limit $2
