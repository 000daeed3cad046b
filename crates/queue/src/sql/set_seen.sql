update failures set needs_review = 0 where job = $1 and needs_review = 1
