-- Copies: where they are, and when they were checked.

-- name: is_being_sealed
-- A job that owns the object's lock and is in the stage that makes its version visible.
select s.job from queue_leases s
join objects o on o.lock = s.lock
join queue_stages g on g.id = s.stage
where o.identifier = $1 and g.pipeline_name = 'ingest' and g.name = 'recording'

-- name: copy_checked
-- Only here is `verified_at` renewed, and only if all that the copy has was read ($5). A copy that
-- became another one while it was looked at keeps what is known of it.
update copies set checked_at = $4,
  state = case when cast($6 as bigint) = 1 then 1 when cast($5 as bigint) is not null then 0 else state end,
  verified_at = case when cast($6 as bigint) = 0 then coalesce(cast($5 as bigint), verified_at) else verified_at end,
  current_read_at = case when cast($6 as bigint) = 0 then coalesce(cast($5 as bigint), current_read_at) else current_read_at end,
  fixity_due = case when cast($6 as bigint) = 0 then coalesce(cast($7 as bigint), fixity_due) else fixity_due end
where object = $1 and store = $2 and digest = $3

-- name: bad_copies
-- Copies of kept objects that are known to be bad, for each store: how many, when the first of them was
-- found to be bad, and the identifier of one.
select c.store, count(*), min(c.checked_at), min(o.identifier)
from copies c join objects o on o.id = c.object
where c.state = 1 and o.state = 1
group by c.store order by c.store

-- name: copy_found_bad
-- A file of it was read for something else than a check, and differs. It is due to be checked at once.
update copies set state = 1, checked_at = $4,
  fixity_due = case when fixity_due < $4 then fixity_due else $4 end
where object = $1 and store = $2 and digest = $3

-- name: copy_by_key
select object from copies where store = $1 and key = $2

-- name: stores_with_copies
-- Store after store by the index, without looking at every copy.
with recursive found(store) as (
  select min(store) from copies
  union all
  select (select min(c.store) from copies c where c.store > found.store) from found where found.store is not null
)
select store from found where store is not null order by store

-- name: objects_only_in (sqlite)
-- Objects of which every copy is in one of these stores.
select count(distinct o.id), min(o.identifier), min(c.store)
from copies c join objects o on o.id = c.object
where o.state = 1 and c.store in (select value from json_each($1))
  and not exists (select 1 from copies r where r.object = c.object and r.store not in (select value from json_each($1)))

-- name: objects_only_in (postgres)
-- Objects of which every copy is in one of these stores.
select count(distinct o.id), min(o.identifier), min(c.store)
from copies c join objects o on o.id = c.object
where o.state = 1 and c.store = any(array(select json_array_elements_text(cast(cast($1 as text) as json))))
  and not exists (select 1 from copies r where r.object = c.object
    and r.store <> all(array(select json_array_elements_text(cast(cast($1 as text) as json)))))

-- name: put_copy
-- A copy is verified as long ago as the least recently verified part of it: a version that is added
-- never renews what is known of those before. Only `copy_checked` does that.
insert into copies (object, store, version, key, digest, files, bytes, stored_at, verified_at,
                    fixity_due, current_read_at)
select cast($1 as bigint), cast($2 as text), cast($3 as bigint), cast($4 as text),
       cast($5 as text), o.files, o.bytes, cast($6 as bigint), cast($8 as bigint),
       cast($7 as bigint), cast($9 as bigint)
from objects o where o.id = $1
on conflict (object, store) do update set
  version = excluded.version, key = excluded.key, digest = excluded.digest,
  files = excluded.files, bytes = excluded.bytes, stored_at = excluded.stored_at,
  current_read_at = excluded.current_read_at,
  verified_at = case when excluded.verified_at < copies.verified_at
    then excluded.verified_at else copies.verified_at end,
  fixity_due = case when excluded.fixity_due < copies.fixity_due
    then excluded.fixity_due else copies.fixity_due end
