-- When files were last written to, as their package says: microseconds since 1970.
alter table ingest_files add column modified bigint;
alter table files add column modified bigint;

-- Directories with nothing in them: stores keep files only.
create table ingest_directories (
  job bigint not null,
  path text not null,
  modified bigint,
  primary key (job, path)
);

create table empty_directories (
  object bigint not null,
  version bigint not null,
  path text not null,
  modified bigint,
  primary key (object, version, path)
);
