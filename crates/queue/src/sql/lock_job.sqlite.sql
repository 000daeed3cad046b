select 'waiting' where $1 is null
