-- What `accession status` counts, from indexes alone: batches that are not completed, and how much is kept.
create index batches_unfinished on batches (state, id) where state <> 3;
create index objects_kept on objects (state, files, bytes);
