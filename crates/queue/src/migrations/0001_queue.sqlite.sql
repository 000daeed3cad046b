-- The queue: what there is to do, who does it, and what became of it.
-- Integers are ids, microseconds or small codes; JSON is text. See src/codes.rs for the codes.

create table pipelines (
  id integer primary key,
  name text not null,
  plain integer not null,           -- 1: a queue that people made; 0: built in
  coalesces integer not null,
  history integer not null,         -- 0: outcomes only; 1: every change
  restart_position integer not null, -- where a requeued job resumes if its object changed meanwhile
  settings text not null,
  created_at integer not null,
  created_by text not null,
  deleted_at integer
);
create unique index pipelines_name on pipelines (name) where deleted_at is null;

create table stages (
  id integer primary key,
  pipeline integer not null references pipelines,
  position integer not null,
  name text not null,
  settings text not null,
  unique (pipeline, position)
);

-- I10: pauses and holds are rows, so they survive restarts.
create table pauses (
  kind text not null,               -- all, pipeline, stage
  id integer not null,              -- 0 for all
  who text not null,
  at integer not null,
  reason text not null,
  primary key (kind, id)
) without rowid;

create table holds (
  kind text not null,               -- batch, collection
  name text not null,
  who text not null,
  at integer not null,
  reason text not null,
  primary key (kind, name)
) without rowid;

-- The record of a job. It changes rarely: what moves is in `waiting` and `started`.
create table jobs (
  id integer primary key,
  pipeline integer not null,
  subject text not null,
  lock text not null,
  batch integer,
  collection text,
  priority integer not null,
  payload blob,
  status integer not null,          -- 0 while it is in waiting or started
  stage integer not null,           -- where it ended; while it is alive, waiting and started know
  targets text,                     -- outside things it is known to need, one a line
  workspace text,
  needs text,                       -- resources it needs beyond its stage's, JSON
  added_at integer not null,
  added_by text not null,
  ended_at integer,
  ended_by text,
  ended_why text
);

create index jobs_batch on jobs (batch, id) where batch is not null;

-- Jobs nobody works on now. Those that can be claimed are in the index waiting_ready, and no others.
create table waiting (
  id integer primary key,
  stage integer not null,
  state integer not null,
  priority integer not null,
  due integer not null,
  lock text not null,
  coalesce_key text,                -- null once begun, and where the pipeline does not coalesce
  begun integer not null,
  batch integer,
  collection text,
  targets text,
  workspace text,
  needs text,
  blocked_on text,                  -- held: by what; blocked: the target; starved: the resource
  why text,
  since integer not null
);
create index waiting_ready on waiting (stage, priority, due, id) where state = 0;
create unique index waiting_lock on waiting (lock, coalesce_key);
create index waiting_due on waiting (stage, due) where state = 2;
create index waiting_blocked on waiting (blocked_on, id) where state in (3, 4, 5);

-- I3: a lock has one owner, from its first claim to the end of its pipeline. I2: and one lease.
create table started (
  lock text primary key,
  id integer not null,
  stage integer not null,
  worker integer,                   -- null between runs: the job waits and keeps its lock
  token integer not null,
  claimed_at integer not null,
  started_at integer,               -- null while it lies in a worker's buffer
  cancel_by text,
  cancel_why text,
  error_seen text,
  progress text,
  probe text                        -- the target this run is a probe of
) without rowid;

create table failures (
  job integer primary key,
  pipeline integer not null,
  subject text not null,
  lock text not null,
  stage integer not null,
  failed_at integer not null,
  code text not null,
  message text not null,
  target text,
  note text,
  needs_review integer not null,
  recoverable integer not null,
  overtaken integer not null        -- 1: another job of the lock has started since
);
create index failures_lock on failures (lock);
create index failures_subject on failures (pipeline, subject);

-- I6: kept for every stage a job had trouble in.
create table tries (
  job integer not null,
  stage integer not null,
  attempts integer not null,        -- since the last requeue
  attempts_ever integer not null,
  interruptions integer not null,   -- since the last requeue
  interruptions_ever integer not null,
  requeues integer not null,
  primary key (job, stage)
) without rowid;

-- I8.
create table history (
  job integer not null,
  id integer not null,
  at integer not null,
  who text not null,
  event text not null,
  from_stage integer,
  from_status integer,
  to_stage integer,
  to_status integer,
  why text,
  code text,
  target text,
  token integer,
  primary key (job, id)
) without rowid;

create table checkpoints (
  job integer not null,
  stage integer not null,
  key text not null,
  value text not null,
  at integer not null,
  primary key (job, stage, key)
) without rowid;

create table targets (
  name text primary key,
  errors integer not null,          -- in a row
  opened_at integer,                -- null while the breaker is closed
  next_probe integer,
  closing integer not null,          -- 1: it is up again, and jobs that waited for it are being released
  probe_wait integer not null,
  probe_job integer,
  probe_token integer,
  reason text
) without rowid;

create table resources (
  name text primary key,
  total integer not null
) without rowid;

create table reservations (
  job integer not null,
  resource text not null,
  amount integer not null,
  worker integer not null,
  primary key (job, resource)
) without rowid;
create index reservations_resource on reservations (resource, worker);

create table workers (
  id integer primary key,
  name text not null,
  boot text not null,
  host text not null,
  pid integer not null,
  stages text not null,
  capacity text not null,
  workspaces text not null,
  started_at integer not null,
  seen_at integer not null,
  lease_until integer not null,
  ended_at integer,
  ended_why text
);
create index workers_live on workers (lease_until) where ended_at is null;

create table batches (
  id integer primary key,
  label text not null,
  pipeline integer not null,
  collection text,
  submitter text not null,
  mode text not null,
  state integer not null,
  held integer not null,
  priority integer,                 -- the profile's, or null for the rule by size
  total integer not null,
  open integer not null,
  succeeded integer not null,
  failed integer not null,
  cancelled integer not null,
  moved integer not null,           -- entries that have become jobs
  created_at integer not null,
  updated_at integer not null,
  error text
);
create index batches_moving on batches (id) where state in (1, 2, 5);

create table batch_entries (
  batch integer not null,
  number integer not null,
  subject text not null,
  lock text,
  payload blob,
  primary key (batch, number)
) without rowid;

create table batch_reports (
  batch integer not null,
  version integer not null,
  at integer not null,
  content text not null,
  primary key (batch, version)
) without rowid;

-- How many runs ended how, by minute: rates without reading history.
create table minutes (
  stage integer not null,
  minute integer not null,
  worker integer not null,
  succeeded integer not null,
  errors integer not null,
  primary key (stage, minute, worker)
) without rowid;
