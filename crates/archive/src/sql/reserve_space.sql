insert into space_reservations (job, work_space, bytes, at) values ($1, $2, $3, $4)
on conflict (job) do update set work_space = excluded.work_space, bytes = excluded.bytes
