update waiting set due = due - (since - $1), since = $1
where state = 2 and begun = 1 and since > $2
returning stage
