-- Files of a job, those of them that were not read, and those that differ from another job's either way.
select
  (select count(*) from ingest_files where job = $1),
  (select count(*) from ingest_files where job = $1 and sha512 is null),
  (select count(*) from (
    select path, sha512 from ingest_files where job = $1
    except select path, sha512 from ingest_files where job = $2) as missing)
  + (select count(*) from (
    select path, sha512 from ingest_files where job = $2
    except select path, sha512 from ingest_files where job = $1) as added)
