-- What the last error of an ingest was about, for its report.
alter table ingests add column failed_file text collate "C";

-- Packages of receiving buckets that were fetched, and the deposits they are kept for.
create table received (
  place text collate "C" primary key,
  batch bigint not null
);
