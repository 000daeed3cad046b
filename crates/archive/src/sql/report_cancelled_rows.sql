select number, subject, who, reason from cancelled_rows where batch = $1 and number > $2 order by number limit $3
