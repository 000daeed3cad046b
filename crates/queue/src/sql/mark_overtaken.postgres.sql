update failures set overtaken = 1 where lock = any ($1::text[])
