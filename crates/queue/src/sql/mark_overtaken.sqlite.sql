update failures set overtaken = 1 where lock = $1
