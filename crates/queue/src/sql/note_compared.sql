insert into replacements (job, by_job, content) values ($1, $2, $3)
on conflict (job) do update set by_job = excluded.by_job, content = excluded.content
where replacements.at is null
