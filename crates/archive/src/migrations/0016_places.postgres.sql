-- Where the current version of an object came from: a path or a URL. An object that only the name
-- of its package leads to is not replaced by a package from elsewhere.
alter table objects add column place text;

update objects set place = (
  select d.source::json ->> 'path'
  from versions v join deposits d on d.batch = v.batch
  where v.object = objects.id and v.number = objects.head and d.kind <> 'manifest'
);

-- How the package of the current version looked in its drop folder: known only where the registry
-- was rebuilt, so that a new database beside an old folder does not take everything again.
alter table objects add column watched text;
create index objects_watched on objects (watched) where watched is not null;
