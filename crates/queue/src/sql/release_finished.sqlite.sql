-- I4: nothing happens without the current token and worker.
delete from started
where lock = $3 and id = $4 and token = $5 and worker = $1
  and instr($2, ',' || stage || ',') > 0
returning id, token, stage, probe
