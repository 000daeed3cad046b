-- The archive: who deposits what, what is on its way in, and what is kept.
-- Integers are ids, microseconds or small codes; JSON is text. See src/codes.rs for the codes.

-- What tells this installation's jobs from those of others.
create table installation (
  id text primary key
) without rowid;

create table collections (
  name text primary key,
  profile text not null,            -- JSON
  created_at integer not null,
  created_by text not null,
  updated_at integer not null
) without rowid;

-- A deposit is a batch; this is what was handed over with it.
create table deposits (
  batch integer primary key,
  kind text,                        -- null until it was examined
  source text not null,             -- JSON: a path or a URL
  name text not null,
  options text not null,            -- JSON: mode, identifiers, metadata, digest
  payload text,                     -- where a manifest is kept, below the payload directory
  created_at integer not null,
  notified_version integer not null default 0
);

-- One job's way through the stages, and its result when it has ended.
create table ingests (
  job integer primary key,
  batch integer,
  collection text not null,
  space_bytes integer,              -- null while it is not known
  package text,                     -- JSON: how the package can be read
  object integer,
  version integer,
  unchanged integer not null default 0,
  metadata text,                    -- JSON: what the package says of itself
  stores text,                      -- JSON: what waits to be sealed, by store
  summary text,                     -- JSON: counts and formats, for reports
  failed_file text,                 -- what the last error was about
  began_at integer not null,
  recorded_at integer,
  cleaned_at integer
);
create index ingests_batch on ingests (batch, job);
create index ingests_uncleaned on ingests (job) where cleaned_at is null;

-- The files of a job on its way, in the order the package lists them.
create table ingest_files (
  job integer not null,
  number integer not null,
  path text not null,               -- in the object: data/…, tags/…
  size integer,
  locator blob,                     -- where in the package
  source text,                      -- JSON: where it is fetched from, and what it must be
  sha512 text,                      -- null until it was read
  digests text,                     -- JSON: the other digests
  puid text,
  format text,                      -- JSON: name, version, media type, basis, warnings
  change integer not null default 0,
  primary key (job, number)
) without rowid;
create index ingest_files_path on ingest_files (job, path);

-- Events of a job, kept from the moment they happened, so that every run records the same ones.
create table ingest_events (
  job integer not null,
  id text not null,
  event text not null,              -- JSON
  primary key (job, id)
) without rowid;

create table space_reservations (
  job integer primary key,
  work_space text not null,
  bytes integer not null,
  at integer not null
);

create table objects (
  id integer primary key,
  identifier text not null,
  collection text not null,
  lock text not null,
  state integer not null,           -- 0 reserved, 1 active, 2 deleted
  job integer not null,             -- who reserved it
  head integer not null,            -- the current version, 0 while reserved
  title text,
  metadata text,                    -- JSON, of the current version
  files integer not null,
  bytes integer not null,
  created_at integer not null,
  updated_at integer not null
);
create unique index objects_identifier on objects (identifier);
create index objects_collection on objects (collection, id);
create index objects_updated on objects (updated_at, id);

create table local_ids (
  collection text not null,
  local_id text not null,
  object integer not null,
  primary key (collection, local_id)
) without rowid;
create index local_ids_object on local_ids (object);

create table versions (
  object integer not null,
  number integer not null,
  job integer not null,
  batch integer,
  submitter text not null,
  message text,
  metadata text,
  files integer not null,
  bytes integer not null,
  files_new integer not null,
  files_changed integer not null,
  files_absent integer not null,
  created_at integer not null,
  primary key (object, number)
) without rowid;

-- A file as it is in the versions from `since` to `until`; null while it is in the current one.
create table files (
  id integer primary key,
  object integer not null,
  path text not null,
  since integer not null,
  until integer,
  size integer not null,
  sha512 text not null,
  digests text,
  puid text,
  format text
);
create unique index files_current on files (object, path) where until is null;
create index files_object on files (object, path, since);
create index files_format on files (puid, object);

-- What each store has of an object: the whole of it up to a version.
create table copies (
  object integer not null,
  store text not null,
  version integer not null,
  key text not null,
  digest text not null,             -- of the inventory, which has those of all files
  files integer not null,
  bytes integer not null,
  stored_at integer not null,
  verified_at integer not null,
  fixity_due integer not null,
  primary key (object, store)
) without rowid;
create index copies_due on copies (fixity_due);
create index copies_key on copies (store, key);

create table events (
  id text primary key,
  object integer,
  version integer,
  path text,
  kind text not null,
  at integer not null,
  agent text not null,
  outcome text not null,            -- success, warning, failure
  detail text,
  note text,
  job integer
) without rowid;
create index events_object on events (object, at, id);
create index events_job on events (job) where object is null;

-- What was seen in drop folders and receiving buckets.
create table sightings (
  watch text not null,
  name text not null,
  fingerprint text not null,
  seen_at integer not null,
  state text not null,
  batch integer,
  primary key (watch, name)
) without rowid;

-- Packages of receiving buckets that were fetched, and the deposits they are kept for.
create table received (
  place text primary key,
  batch integer not null
) without rowid;

-- What has been sent, or is to be: mail and callbacks refer to rows here.
create table messages (
  id integer primary key,
  kind text not null,               -- mail, callback
  batch integer,
  job integer,
  body text not null,               -- JSON
  created_at integer not null,
  sent_at integer
);

-- Reviews that operators have been told about.
create table told_reviews (
  job integer primary key,
  at integer not null
);
