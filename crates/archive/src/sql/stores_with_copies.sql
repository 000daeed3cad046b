-- Store after store by the index, without looking at every copy.
with recursive found(store) as (
  select min(store) from copies
  union all
  select (select min(c.store) from copies c where c.store > found.store) from found where found.store is not null
)
select store from found where store is not null order by store
