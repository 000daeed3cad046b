-- Claims that share a budget take turns, or two would both take the last of it.
select name, total from resources order by name for update
