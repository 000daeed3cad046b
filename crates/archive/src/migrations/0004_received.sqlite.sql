-- What the last error of an ingest was about, for its report.
alter table ingests add column failed_file text;

-- Packages of receiving buckets that were fetched, and the deposits they are kept for.
create table received (
  place text primary key,
  batch integer not null
) without rowid;
