-- The server numbers the rows itself, in their order: $2 is null here.
insert into history (job, id, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token)
select r.job, coalesce(r.id, nextval('history_ids')), r.at, r.who, r.event, r.from_stage, r.from_status, r.to_stage,
  r.to_status, r.why, r.code, r.target, r.token
from unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::smallint[], $8::bigint[],
  $9::smallint[], $10::text[], $11::text[], $12::text[], $13::bigint[])
  as r (job, id, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token)
