insert into cancelled_rows (batch, number, subject, who, reason, at)
select batch, number, subject, cast($2 as text), cast($3 as text), cast($4 as bigint)
from queue_batch_entries where batch = $1
