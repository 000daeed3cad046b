insert into history (job, id, at, who, event, from_stage, from_status, to_stage, to_status, why, code, target, token)
select * from unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::smallint[], $8::bigint[],
  $9::smallint[], $10::text[], $11::text[], $12::text[], $13::bigint[])
