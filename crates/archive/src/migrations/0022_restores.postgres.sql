-- What was asked for in a batch of restores.
create table restore_requests (
  batch bigint primary key,
  request text collate "C" not null,            -- JSON: the form, the destination, who is told
  told_version bigint not null default 0
);

-- One package on its way out, and where it was delivered.
create table restores (
  job bigint primary key,
  batch bigint,
  object bigint not null,
  version bigint not null,
  place text collate "C" not null,              -- as it may be shown
  stem text collate "C" not null,               -- the same without what archives are called
  request text collate "C" not null,            -- JSON: what is wanted, and where to
  package text collate "C" not null,            -- JSON: what was found out while it was written
  bytes bigint not null default 0,              -- of the files that were delivered
  missing bigint not null default 0,            -- files that no store had intact
  began_at bigint not null,
  delivered_at bigint,
  kept_until bigint,                            -- null: for ever
  removed_at bigint,                            -- by the archive
  cleaned_at bigint                             -- nothing of it is left but what was delivered
);
create index restores_batch on restores (batch, job);
create index restores_stem on restores (stem) where delivered_at is not null;
create index restores_kept on restores (kept_until) where kept_until is not null and removed_at is null;
create index restores_uncleaned on restores (job) where cleaned_at is null;

-- Content in cold storage that was asked for, so that each file is asked for once.
create table thaw_requests (
  job bigint not null,
  store text collate "C" not null,
  key text collate "C" not null,
  asked_at bigint not null,
  ready_at bigint,                              -- when it was found readable
  readable_until bigint,
  primary key (job, store, key)
);

-- When each collection had its last restore drill.
create table restore_drills (
  collection text collate "C" primary key,
  at bigint not null
);
