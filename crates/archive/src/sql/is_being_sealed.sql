-- A job that owns the object's lock and is in the stage that makes its version visible.
select s.id from started s
join objects o on o.lock = s.lock
join stages g on g.id = s.stage
join pipelines p on p.id = g.pipeline
where o.identifier = $1 and p.name = 'ingest' and g.name = 'recording'
