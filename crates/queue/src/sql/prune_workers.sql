delete from workers where ended_at < $1 and not exists (select 1 from started where worker = workers.id)
