-- Where the current version of an object came from: a path or a URL. An object that only the name
-- of its package leads to is not replaced by a package from elsewhere.
alter table objects add column place text;

update objects set place = (
  select d.source::json ->> 'path'
  from versions v join deposits d on d.batch = v.batch
  where v.object = objects.id and v.number = objects.head and d.kind <> 'manifest'
);
