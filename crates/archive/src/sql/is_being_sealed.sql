-- A job that owns the object's lock and is in the stage that makes its version visible.
select s.job from queue_leases s
join objects o on o.lock = s.lock
join queue_stages g on g.id = s.stage
where o.identifier = $1 and g.pipeline_name = 'ingest' and g.name = 'recording'
