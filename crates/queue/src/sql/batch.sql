-- Batches: their entries on the way to becoming jobs, and the counts of their jobs (I7).

-- name: insert_batch
insert into batches
  (id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled, moved, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, 0, 0, $7, 0, 0, 0, 0, 0, 0, $8, $8)

-- name: load_batch
select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error,
  case when state in (0, 1) and exists (
    select 1 from holds h where h.kind = 'collection' and h.name = batches.collection) then 1 else 0 end
from batches where id = $1

-- name: list_batches
select id, label, pipeline, collection, submitter, mode, state, held, priority, total, open, succeeded, failed, cancelled,
  moved, created_at, updated_at, error,
  case when state in (0, 1) and exists (
    select 1 from holds h where h.kind = 'collection' and h.name = batches.collection) then 1 else 0 end
from batches where id < $1 and (cast($2 as bigint) is null or state = $2) order by id desc limit $3

-- name: count_open_batches
select count(*), coalesce(cast(sum(open) as bigint), 0) from batches where state in (1, 2, 5)

-- name: lock_batch (postgres)
select id from batches where id = $1 for no key update

-- name: insert_entries (sqlite)
insert into batch_entries (batch, number, subject, lock, payload) values ($1, $2, $3, $4, $5)
on conflict (batch, number) do nothing

-- name: insert_entries (postgres)
insert into batch_entries (batch, number, subject, lock, payload)
select $1, r.* from unnest($2::bigint[], $3::text[], $4::text[], $5::bytea[]) as r
on conflict (batch, number) do nothing

-- name: accept_batch
-- Jobs may have been added to it before: entries that were bad from the start.
update batches set
  state = 1, updated_at = $2, prepared_by = null,
  total = total + (select count(*) from batch_entries where batch = $1),
  open = open + (select count(*) from batch_entries where batch = $1)
where id = $1
returning total, open

-- name: batch_to_reporting
update batches set state = $2, updated_at = $3 where id = $1

-- name: drop_entries
delete from batch_entries where batch = $1

-- name: fail_batch
update batches set state = 2, error = $2, updated_at = $3 where id = $1

-- name: moving_batch (sqlite)
-- From entry to entry of another batch: there may be many batches under way, and few of them have
-- entries left.
with recursive with_entries (batch) as (
  select min(batch) from batch_entries
  union all
  select (select min(e.batch) from batch_entries e where e.batch > w.batch) from with_entries w where w.batch is not null
)
select b.id from with_entries w cross join batches b on b.id = w.batch
where b.state = 1 and b.held = 0
limit 1

-- name: moving_batch (postgres)
-- From entry to entry of another batch: there may be many batches under way, and few of them have
-- entries left.
with recursive with_entries (batch) as (
  select min(batch) from batch_entries
  union all
  select (select min(e.batch) from batch_entries e where e.batch > w.batch) from with_entries w where w.batch is not null
)
select b.id
from with_entries w, lateral (
  select id from batches where id = w.batch and state = 1 and held = 0 for no key update skip locked
) as b
limit 1

-- name: next_entries
select number, subject, lock, payload from batch_entries where batch = $1 order by number limit $2

-- name: delete_entries
delete from batch_entries where batch = $1 and number <= $2

-- name: entries_moved
update batches set moved = moved + $2, total = total - $3, open = open - $3, updated_at = $4 where id = $1

-- name: entries_cancelled
update batches set moved = moved + $2, open = open - $2, cancelled = cancelled + $2, updated_at = $3 where id = $1

-- name: set_batch_held
update batches set held = $2, updated_at = $3 where id = $1

-- name: open_jobs_of_batch
select id from jobs where batch = $1 and batch is not null and id > $2 and status in (0, 3) order by id limit $3

-- name: uncount_entries
-- Entries that never became jobs count as cancelled: they were submitted.
update batches set open = open - $2, cancelled = cancelled + $2, updated_at = $3 where id = $1

-- name: change_counts
update batches set
  total = total + $2, open = open + $3, succeeded = succeeded + $4, failed = failed + $5,
  cancelled = cancelled + $6, updated_at = $7
where id = $1
returning open, state
