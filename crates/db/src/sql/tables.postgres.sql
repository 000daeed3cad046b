-- The columns of all tables: type, whether it gives itself values, and a table that it refers to.
select cast(c.relname as text), cast(a.attname as text), cast(t.typname as text),
  case when a.attidentity <> '' then 1 else 0 end,
  (select cast(f.relname as text) from pg_constraint k join pg_class f on f.oid = k.confrelid
   where k.contype = 'f' and k.conrelid = c.oid and a.attnum = any(k.conkey) limit 1)
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
where c.relkind = 'r' and c.relnamespace = (select oid from pg_namespace where nspname = current_schema())
order by c.relname, a.attnum
