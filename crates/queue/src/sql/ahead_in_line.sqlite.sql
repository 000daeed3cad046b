select lock, id, 1 from started where lock = $2
union all
select lock, id, 0 from waiting where $1 = 1 and lock = $2 and state in (0, 1)
