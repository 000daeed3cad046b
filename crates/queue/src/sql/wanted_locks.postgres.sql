select distinct lock from waiting where lock = any ($1::text[]) and state = 1
