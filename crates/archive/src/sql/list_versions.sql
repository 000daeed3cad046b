select number, created_at, submitter, message, job, batch, files, bytes, files_new, files_changed,
       files_absent
from versions where object = $1 order by number
