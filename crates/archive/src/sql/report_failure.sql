select f.subject, s.name, f.code, f.message
from failures f join stages s on s.id = f.stage where f.job = $1
