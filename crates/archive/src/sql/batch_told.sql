update deposits set notified_version = $2 where batch = $1 and notified_version < $2
