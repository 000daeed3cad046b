update objects set
  files = (select count(*) from files f where f.object = $1 and f.until is null),
  bytes = (select coalesce(sum(size), 0) from files f where f.object = $1 and f.until is null)
where id = $1
