-- What validating counted. A version is sealed only if it has these files and these bytes.
alter table ingests add column validated_files bigint;
alter table ingests add column validated_bytes bigint;

-- How often what the job had gathered was discarded. Each time it starts in another directory.
alter table ingests add column discards bigint not null default 0;
