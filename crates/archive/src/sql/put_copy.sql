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
