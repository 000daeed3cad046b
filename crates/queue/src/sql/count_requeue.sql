insert into tries (job, stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues)
values ($1, $2, 0, 0, 0, 0, 1)
on conflict (job, stage) do update set requeues = tries.requeues + 1
