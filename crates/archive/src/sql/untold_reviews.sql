-- A job that was sent again and failed again is news.
select f.job from queue_failures f
where f.needs_review = 1 and not exists (select 1 from told_reviews t where t.job = f.job and t.at >= f.failed_at)
order by f.job limit 10000
