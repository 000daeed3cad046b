-- The columns of all tables: type, whether it gives itself values, and a table that it refers to.
select m.name, p.name, lower(p.type), 0,
  (select f."table" from pragma_foreign_key_list(m.name) f where f."from" = p.name limit 1)
from sqlite_schema m join pragma_table_info(m.name) p
where m.type = 'table' and substr(m.name, 1, 7) <> 'sqlite_'
order by m.name, p.cid
