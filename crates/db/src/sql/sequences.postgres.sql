-- Sequences that are no column's own.
select cast(s.sequencename as text), s.last_value
from pg_sequences s
join pg_class c on c.relname = s.sequencename and c.relkind = 'S'
  and c.relnamespace = (select oid from pg_namespace where nspname = current_schema())
where s.schemaname = current_schema()
  and not exists (select 1 from pg_depend d
    where d.classid = cast('pg_class' as regclass) and d.objid = c.oid and d.deptype in ('i', 'a') and d.refobjsubid > 0)
order by s.sequencename
