-- What validating counted. A version is sealed only if it has these files and these bytes.
alter table ingests add column validated_files integer;
alter table ingests add column validated_bytes integer;

-- How often what the job had gathered was discarded. Each time it starts in another directory.
alter table ingests add column discards integer not null default 0;
