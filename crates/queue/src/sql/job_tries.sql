select t.stage, t.attempts, t.attempts_ever, t.interruptions, t.interruptions_ever, t.requeues
from tries t join stages s on s.id = t.stage where t.job = $1 order by s.position
