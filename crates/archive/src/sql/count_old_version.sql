update versions set
  files = (select count(*) from files f where f.object = $1 and f.since <= $2
           and (f.until is null or f.until >= $2)),
  bytes = (select coalesce(sum(size), 0) from files f where f.object = $1 and f.since <= $2
           and (f.until is null or f.until >= $2))
where object = $1 and number = $2
