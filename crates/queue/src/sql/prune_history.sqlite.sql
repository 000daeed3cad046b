delete from history where job = $1
