select i.job, i.batch, i.collection, i.space_bytes, i.package, i.object, i.version, i.unchanged, i.metadata,
  i.stores, i.summary, i.began_at, i.recorded_at, i.cleaned_at, i.discards, i.validated_files,
  i.validated_bytes, i.said, c.profile
from (select 1) as one
left join ingests i on i.job = $1
left join collections c on c.name = $2
