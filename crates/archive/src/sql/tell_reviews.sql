insert into told_reviews (job, at)
select f.job, cast($1 as bigint) from queue_failures f
where f.needs_review = 1 and not exists (select 1 from told_reviews t where t.job = f.job and t.at >= f.failed_at)
on conflict (job) do update set at = excluded.at
