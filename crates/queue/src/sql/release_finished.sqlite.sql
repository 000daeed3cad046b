-- I4: nothing happens without the current token and worker.
delete from started where lock = $2 and id = $3 and token = $4 and worker = $1
