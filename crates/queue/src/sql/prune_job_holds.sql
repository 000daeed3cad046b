-- Holds of jobs that ended while somebody held them.
delete from holds
where kind = 'job'
  and exists (select 1 from endings e where e.job = case when holds.kind = 'job' then cast(holds.name as bigint) end)
