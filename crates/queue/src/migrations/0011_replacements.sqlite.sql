-- Which job took the place of a job that was cancelled because of it.
create table replacements (
  job integer primary key,          -- the job that is superseded
  by_job integer not null,          -- the job that takes its place
  content integer,                  -- 0: never read; 1: the same; 2: different; null: not compared
  at integer                        -- when it was superseded; null while it is only compared
);
create index replacements_by on replacements (by_job);

-- What a stage left for the stages that follow it.
create table states (
  job integer not null,
  stage integer not null,
  state text not null,              -- a JSON object
  at integer not null,
  primary key (job, stage)
) without rowid;
