-- All content that the current version refers to was read; that of earlier versions was not.
update copies set current_read_at = $3 where object = $1 and store = $2
