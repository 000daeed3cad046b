-- The queue: what there is to do, who does it, and what became of it.
-- Integers are ids, microseconds or small codes; JSON is text. See src/codes.rs for the codes.

create table pipelines (
  id bigint primary key,
  name text collate "C" not null,
  plain smallint not null,           -- 1: a queue that people made; 0: built in
  coalesces smallint not null,
  history smallint not null,         -- 0: outcomes only; 1: every change
  restart_position smallint not null, -- where a requeued job resumes if its object changed meanwhile
  settings text not null,
  created_at bigint not null,
  created_by text not null,
  deleted_at bigint
);
create unique index pipelines_name on pipelines (name) where deleted_at is null;

create table stages (
  id bigint primary key,
  pipeline bigint not null references pipelines,
  position smallint not null,
  name text collate "C" not null,
  settings text not null,
  unique (pipeline, position)
);

-- I10: pauses and holds are rows, so they survive restarts.
create table pauses (
  kind text not null,               -- all, pipeline, stage
  id bigint not null,              -- 0 for all
  who text not null,
  at bigint not null,
  reason text not null,
  primary key (kind, id)
);

create table holds (
  kind text not null,               -- batch, collection
  name text collate "C" not null,
  who text not null,
  at bigint not null,
  reason text not null,
  primary key (kind, name)
);

-- The record of a job. It changes rarely: what moves is in `waiting` and `started`.
create table jobs (
  id bigint primary key,
  pipeline bigint not null,
  subject text collate "C" not null,
  lock text collate "C" not null,
  batch bigint,
  collection text,
  priority smallint not null,
  payload bytea,
  status smallint not null,          -- 0 while it is in waiting or started
  stage bigint not null,           -- where it ended; while it is alive, waiting and started know
  targets text,                     -- outside things it is known to need, one a line
  workspace text,
  needs text,                       -- resources it needs beyond its stage's, JSON
  added_at bigint not null,
  added_by text not null,
  ended_at bigint,
  ended_by text,
  ended_why text
) with (fillfactor = 85);

create index jobs_batch on jobs (batch, id) where batch is not null;

-- Jobs nobody works on now. Those that can be claimed are in the index waiting_ready, and no others.
create table waiting (
  id bigint primary key,
  stage bigint not null,
  state smallint not null,
  priority smallint not null,
  due bigint not null,
  lock text collate "C" not null,
  coalesce_key text collate "C",                -- null once begun, and where the pipeline does not coalesce
  begun smallint not null,
  batch bigint,
  collection text,
  targets text,
  workspace text,
  needs text,
  blocked_on text,                  -- held: by what; blocked: the target; starved: the resource
  why text,
  since bigint not null
);
create index waiting_ready on waiting (stage, priority, due, id) where state = 0;
create unique index waiting_lock on waiting (lock, coalesce_key);
create index waiting_due on waiting (stage, due) where state = 2;
create index waiting_blocked on waiting (blocked_on, id) where state in (3, 4, 5);

-- I3: a lock has one owner, from its first claim to the end of its pipeline. I2: and one lease.
create table started (
  lock text collate "C" primary key,
  id bigint not null,
  stage bigint not null,
  worker bigint,                   -- null between runs: the job waits and keeps its lock
  token bigint not null,
  claimed_at bigint not null,
  started_at bigint,               -- null while it lies in a worker's buffer
  cancel_by text,
  cancel_why text,
  error_seen text,
  progress text,
  probe text                        -- the target this run is a probe of
);

create table failures (
  job bigint primary key,
  pipeline bigint not null,
  subject text collate "C" not null,
  lock text collate "C" not null,
  stage bigint not null,
  failed_at bigint not null,
  code text not null,
  message text not null,
  target text,
  note text,
  needs_review smallint not null,
  recoverable smallint not null,
  overtaken smallint not null        -- 1: another job of the lock has started since
);
create index failures_lock on failures (lock);
create index failures_subject on failures (pipeline, subject);

-- I6: kept for every stage a job had trouble in.
create table tries (
  job bigint not null,
  stage bigint not null,
  attempts bigint not null,        -- since the last requeue
  attempts_ever bigint not null,
  interruptions bigint not null,   -- since the last requeue
  interruptions_ever bigint not null,
  requeues bigint not null,
  primary key (job, stage)
);

-- I8.
create table history (
  job bigint not null,
  id bigint not null,
  at bigint not null,
  who text not null,
  event text not null,
  from_stage bigint,
  from_status smallint,
  to_stage bigint,
  to_status smallint,
  why text,
  code text,
  target text,
  token bigint,
  primary key (job, id)
);

create table checkpoints (
  job bigint not null,
  stage bigint not null,
  key text not null,
  value text not null,
  at bigint not null,
  primary key (job, stage, key)
);

create table targets (
  name text collate "C" primary key,
  errors bigint not null,          -- in a row
  opened_at bigint,                -- null while the breaker is closed
  next_probe bigint,
  closing smallint not null,          -- 1: it is up again, and jobs that waited for it are being released
  probe_wait bigint not null,
  probe_job bigint,
  probe_token bigint,
  reason text
);

create table resources (
  name text collate "C" primary key,
  total bigint not null
);

create table reservations (
  job bigint not null,
  resource text not null,
  amount bigint not null,
  worker bigint not null,
  primary key (job, resource)
);
create index reservations_resource on reservations (resource, worker);

create table workers (
  id bigint primary key,
  name text collate "C" not null,
  boot text not null,
  host text not null,
  pid bigint not null,
  stages text not null,
  capacity text not null,
  workspaces text not null,
  started_at bigint not null,
  seen_at bigint not null,
  lease_until bigint not null,
  ended_at bigint,
  ended_why text
);
create index workers_live on workers (lease_until) where ended_at is null;

create table batches (
  id bigint primary key,
  label text not null,
  pipeline bigint not null,
  collection text,
  submitter text not null,
  mode text not null,
  state smallint not null,
  held smallint not null,
  priority smallint,                 -- the profile's, or null for the rule by size
  total bigint not null,
  open bigint not null,
  succeeded bigint not null,
  failed bigint not null,
  cancelled bigint not null,
  moved bigint not null,           -- entries that have become jobs
  created_at bigint not null,
  updated_at bigint not null,
  error text
);
create index batches_moving on batches (id) where state in (1, 2, 5);

create table batch_entries (
  batch bigint not null,
  number bigint not null,
  subject text collate "C" not null,
  lock text collate "C",
  payload bytea,
  primary key (batch, number)
);

create table batch_reports (
  batch bigint not null,
  version bigint not null,
  at bigint not null,
  content text not null,
  primary key (batch, version)
);

-- How many runs ended how, by minute: rates without reading history.
create table minutes (
  stage bigint not null,
  minute bigint not null,
  worker bigint not null,
  succeeded bigint not null,
  errors bigint not null,
  primary key (stage, minute, worker)
);

create sequence pipeline_ids;
create sequence stage_ids;
create sequence job_ids cache 1;
create sequence tokens;
create sequence history_ids;
create sequence worker_ids;
create sequence batch_ids;

-- Rows come and go here by the thousand a second.
alter table waiting set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
alter table started set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
