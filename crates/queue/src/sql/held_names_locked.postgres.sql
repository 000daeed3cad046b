-- Holds of running jobs are taken away by the transactions that settle their runs: locking them would
-- have such transactions wait for one another.
with groups as materialized (
  select kind, name from holds where kind <> 'job' order by kind, name for share
)
select kind, name from groups
union all
select kind, name from holds where kind = 'job'
