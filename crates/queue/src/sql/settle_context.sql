select
  case when exists (select 1 from targets) then 1 else 0 end,
  case when exists (select 1 from failures) then 1 else 0 end,
  case when exists (select 1 from reservations) then 1 else 0 end
