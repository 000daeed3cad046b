-- Batches whose report may be due are found without looking at all that are under way.
create index batches_reporting on batches (id) where state in (2, 5);
