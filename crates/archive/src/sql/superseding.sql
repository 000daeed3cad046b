-- Whether a failed deposit and a later one have the same content.

-- name: failed_before
-- Failed jobs that a success of this job may supersede, whether their data were discarded, what they and
-- this job were to bring in, and what is known of them.
select f.job, f.discarded, a.payload, b.payload, i.summary
from queue_jobs b
join queue_failures f on f.pipeline = b.pipeline and f.subject = b.subject and f.job < b.id
join queue_jobs a on a.id = f.job
left join ingests i on i.job = f.job
where b.id = $1 and (a.batch is null or b.batch is null or a.batch <> b.batch)
  and a.collection is not distinct from b.collection

-- name: compare_deposits
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
