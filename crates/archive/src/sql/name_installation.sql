insert into installation (id)
select cast($1 as text) where not exists (select 1 from installation)
