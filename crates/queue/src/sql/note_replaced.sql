-- What was compared is known if it was compared with this job.
insert into replacements (job, by_job, at) values ($1, $2, $3)
on conflict (job) do update set
  content = case when replacements.by_job = excluded.by_job then replacements.content end,
  by_job = excluded.by_job, at = excluded.at
