-- Mails and callbacks: which are due, which were sent.

-- name: insert_message
insert into messages (id, kind, batch, job, body, created_at, sender) values ($1, $2, $3, $4, $5, $6, $7)

-- name: find_message
select body, created_at, sent_at from messages where id = $1

-- name: message_sent
update messages set sent_at = $2 where id = $1

-- name: batch_to_tell
select r.batch, max(r.version)
from queue_reports r join deposits d on d.batch = r.batch
where r.announced = 0
group by r.batch order by r.batch limit 1

-- name: batch_told
update deposits set notified_version = $2 where batch = $1 and notified_version < $2

-- name: restore_to_tell
select r.batch, max(r.version)
from queue_reports r join restore_requests d on d.batch = r.batch
where r.announced = 0
group by r.batch order by r.batch limit 1

-- name: restore_told
update restore_requests set told_version = $2 where batch = $1 and told_version < $2

-- name: last_told_review
select coalesce(max(at), 0) from told_reviews

-- name: untold_reviews
-- A job that was sent again and failed again is news.
select f.job from queue_failures f
where f.needs_review = 1 and not exists (select 1 from told_reviews t where t.job = f.job and t.at >= f.failed_at)
order by f.job limit 10000

-- name: tell_reviews
insert into told_reviews (job, at)
select f.job, cast($1 as bigint) from queue_failures f
where f.needs_review = 1 and not exists (select 1 from told_reviews t where t.job = f.job and t.at >= f.failed_at)
on conflict (job) do update set at = excluded.at

-- name: unsent_messages
-- What a batch (0: none) still has to send: jobs that wait or run, and those that failed. A job that
-- was cancelled has nothing more to send.
select m.sender, m.kind, w.state, w.due, w.stage, f.code, f.message
from messages m
join queue_jobs j on j.id = m.sender
left join queue_waiting w on w.job = m.sender
left join queue_failures f on f.job = m.sender
where coalesce(m.batch, 0) = $1 and m.sent_at is null and m.created_at >= $2 and j.status in ('open', 'failed')
order by m.id limit $3

-- name: count_unsent
-- Messages that wait or are being sent.
select count(*) from (
  select w.job from queue_waiting w where w.stage = $1
  union all
  select s.job from queue_leases s where s.stage = $1 and s.worker is not null
) left_over
