-- Cheaper rows. A condition with a list made SQLite build a table for it at every insert and delete;
-- whoever asks for blocked jobs asks by what they wait for.
drop index waiting_blocked;
create index waiting_blocked on waiting (blocked_on, since, id) where blocked_on is not null;
-- The rowid, which is the id, ends every index anyway.
drop index waiting_ready;
create index waiting_ready on waiting (stage, priority, due) where state = 0;
-- Empty most of the time, so that ending a job that nobody waits behind costs a look and no more.
create index waiting_parked on waiting (lock) where state = 1;

-- How a job ended is a row of its own: adding one at the end of a table costs far less than making
-- a record longer in the middle of a full page.
create table endings (
  job integer primary key,
  status integer not null,
  stage integer not null,           -- where it ended
  ended_at integer not null,
  ended_by text not null,
  ended_why text
);
insert into endings (job, status, stage, ended_at, ended_by, ended_why)
select id, status, stage, coalesce(ended_at, added_at), coalesce(ended_by, ''), ended_why from jobs where status <> 0;
alter table jobs drop column status;
alter table jobs drop column stage;
alter table jobs drop column ended_at;
alter table jobs drop column ended_by;
alter table jobs drop column ended_why;
alter table jobs rename to job_records;

-- A job's record, and how it ended. Status and stage are 0 while it is in waiting or started.
create view jobs as
select j.id, j.pipeline, j.subject, j.lock, j.batch, j.collection, j.priority, j.payload,
  coalesce(e.status, 0) as status, coalesce(e.stage, 0) as stage, j.targets, j.workspace, j.needs,
  j.added_at, j.added_by, e.ended_at, e.ended_by, e.ended_why
from job_records j left join endings e on e.job = j.id;

-- Reports that nobody was told of yet are found without looking through all there ever were.
alter table batch_reports add column announced integer not null default 0;
create index batch_reports_new on batch_reports (batch, version) where announced = 0;
