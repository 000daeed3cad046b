-- Among the newest thousand: there may be millions.
select id from (select id, submitter from queue_batches order by id desc limit 1000) as newest
where submitter = $1 order by id desc limit $2
