insert into tries (job, stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues)
values ($1, $2, 1, 1, 0, 0, 0)
on conflict (job, stage) do update set attempts = tries.attempts + 1, attempts_ever = tries.attempts_ever + 1
returning attempts
