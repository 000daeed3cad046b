delete from endings where job = $1
