select id, token, case when cancel_by is null then 0 else 1 end from started where worker = $1
