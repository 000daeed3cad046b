-- 1 new, 2 changed, 3 unchanged, as in src/codes.rs.
update ingest_files set change = coalesce(
  (select case when f.sha512 = ingest_files.sha512 then 3 else 2 end
   from files f where f.object = $2 and f.path = ingest_files.path and f.until is null),
  1)
where job = $1
