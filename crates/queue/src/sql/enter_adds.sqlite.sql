select case when exists (select 1 from holds) then 1 else 0 end
from pipelines where id = $1 and deleted_at is null
