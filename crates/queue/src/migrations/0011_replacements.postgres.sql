-- Which job took the place of a job that was cancelled because of it.
create table replacements (
  job bigint primary key,           -- the job that is superseded
  by_job bigint not null,          -- the job that takes its place
  content smallint,                 -- 0: never read; 1: the same; 2: different; null: not compared
  at bigint                        -- when it was superseded; null while it is only compared
);
create index replacements_by on replacements (by_job);

-- What a stage left for the stages that follow it.
create table states (
  job bigint not null,
  stage bigint not null,
  state text not null,              -- a JSON object
  at bigint not null,
  primary key (job, stage)
);
