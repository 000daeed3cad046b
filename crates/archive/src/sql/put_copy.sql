insert into copies (object, store, version, key, digest, files, bytes, stored_at, verified_at,
                    fixity_due)
select cast($1 as bigint), cast($2 as text), cast($3 as bigint), cast($4 as text),
       cast($5 as text), o.files, o.bytes, cast($6 as bigint), cast($8 as bigint),
       cast($7 as bigint)
from objects o where o.id = $1
on conflict (object, store) do update set
  version = excluded.version, key = excluded.key, digest = excluded.digest,
  files = excluded.files, bytes = excluded.bytes, stored_at = excluded.stored_at,
  verified_at = excluded.verified_at, fixity_due = excluded.fixity_due
