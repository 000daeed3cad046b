delete from replacements where job = $1
