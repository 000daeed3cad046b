-- Ids are never used again, even when the newest rows were pruned; so not max(id) + 1.
update counters set value = value + $2 where name = $1
