-- What the nearest stage before this one left.
select s.state from states s join stages g on g.id = s.stage
where s.job = $1 and g.position < (select position from stages where id = $2)
order by g.position desc limit 1
