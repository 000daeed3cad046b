-- Creating, changing and deleting pipelines.

-- name: move_stage
update stages set position = $2 where id = $1

-- name: set_restart
update pipelines set restart_position = $2 where id = $1

-- name: insert_stage
insert into stages (id, pipeline, position, name, settings) values ($1, $2, $3, $4, $5)

-- name: insert_pipeline
insert into pipelines (id, name, plain, coalesces, history, restart_position, settings, created_at, created_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: update_pipeline
update pipelines set coalesces = $2, history = $3, settings = $4 where id = $1

-- name: update_stage
update stages set settings = $2 where id = $1

-- name: pipeline_depth
select
  (select count(*) from waiting w join stages t on t.id = w.stage where t.pipeline = $1),
  (select count(*) from leases s join stages t on t.id = s.stage where t.pipeline = $1 and s.worker is not null),
  (select count(*) from failures where pipeline = $1)

-- name: stage_depth
select count(*) from waiting where stage = $1

-- name: batch_being_taken_in
select b.id from batches b
where b.pipeline = $1 and b.state in (0, 1) and exists (select 1 from batch_entries e where e.batch = b.id)
limit 1

-- name: close_pipeline (postgres)
select pg_advisory_xact_lock(1094927183, cast(cast($1 as bigint) as integer))

-- name: delete_pipeline
update pipelines set deleted_at = $2 where id = $1 and deleted_at is null
