update failures set discarded = 1 where job = $1 and discarded = 0
