insert into tries (job, stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues)
values ($1, $2, 0, 0, 1, 1, 0)
on conflict (job, stage) do update set
  interruptions = tries.interruptions + 1, interruptions_ever = tries.interruptions_ever + 1
returning interruptions
