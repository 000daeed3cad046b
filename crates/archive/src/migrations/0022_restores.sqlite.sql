-- What was asked for in a batch of restores.
create table restore_requests (
  batch integer primary key,
  request text not null,            -- JSON: the form, the destination, who is told
  told_version integer not null default 0
);

-- One package on its way out, and where it was delivered.
create table restores (
  job integer primary key,
  batch integer,
  object integer not null,
  version integer not null,
  place text not null,              -- as it may be shown
  stem text not null,               -- the same without what archives are called
  request text not null,            -- JSON: what is wanted, and where to
  package text not null,            -- JSON: what was found out while it was written
  bytes integer not null default 0,              -- of the files that were delivered
  missing integer not null default 0,            -- files that no store had intact
  began_at integer not null,
  delivered_at integer,
  kept_until integer,                            -- null: for ever
  removed_at integer,                            -- by the archive
  cleaned_at integer                             -- nothing of it is left but what was delivered
);
create index restores_batch on restores (batch, job);
create index restores_stem on restores (stem) where delivered_at is not null;
create index restores_kept on restores (kept_until) where kept_until is not null and removed_at is null;
create index restores_uncleaned on restores (job) where cleaned_at is null;

-- Content in cold storage that was asked for, so that each file is asked for once.
create table thaw_requests (
  job integer not null,
  store text not null,
  key text not null,
  asked_at integer not null,
  ready_at integer,                              -- when it was found readable
  readable_until integer,
  primary key (job, store, key)
);

-- When each collection had its last restore drill.
create table restore_drills (
  collection text primary key,
  at integer not null
);
