-- Pipelines and stages with their settings.

-- name: all_pipelines
select id, name, plain, coalesces, history, restart_position, settings,
  case when deleted_at is null then 0 else 1 end
from pipelines

-- name: all_stages
select id, pipeline, position, name, settings from stages order by pipeline, position
