-- When files were last written to, as their package says: microseconds since 1970.
alter table ingest_files add column modified integer;
alter table files add column modified integer;

-- Directories with nothing in them: stores keep files only.
create table ingest_directories (
  job integer not null,
  path text not null,
  modified integer,
  primary key (job, path)
) without rowid;

create table empty_directories (
  object integer not null,
  version integer not null,
  path text not null,
  modified integer,
  primary key (object, version, path)
) without rowid;
