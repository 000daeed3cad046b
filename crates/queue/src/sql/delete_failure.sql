delete from failures where job = $1
