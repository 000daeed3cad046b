delete from failures where job = $1 returning stage, recoverable, overtaken, discarded
