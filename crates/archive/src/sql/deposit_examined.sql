update deposits set kind = $2, payload = coalesce($3, payload) where batch = $1
