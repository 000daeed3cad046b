select id, name, plain, coalesces, history, restart_position, settings,
  case when deleted_at is null then 0 else 1 end
from pipelines
