select s.stage, s.at, s.state from states s join stages g on g.id = s.stage where s.job = $1 order by g.position
