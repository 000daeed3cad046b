update copies set verified_at = $3, fixity_due = $4 where object = $1 and store = $2
